//! A cluster that was there before us: we use it, we never change or remove it.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// Somebody's cluster.
pub struct Existing {
    kubeconfig: PathBuf,
}

impl Existing {
    /// Checks that the kubeconfig is a file.
    pub fn open(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let path = kubeconfig.context("--provider existing needs --kubeconfig FILE")?;
        anyhow::ensure!(path.is_file(), "{} is not a file", path.display());
        Ok(Self {
            kubeconfig: path.canonicalize()?,
        })
    }

    /// The kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }
}
