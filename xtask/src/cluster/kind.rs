//! Clusters of kind: plain `kind create cluster`, for machines with a container engine.

use std::path::{Path, PathBuf};

use super::plan::Name;
use crate::{progress::Step, run::Cmd};

/// One cluster of kind's.
pub struct Kind {
    name: String,
    kubeconfig: PathBuf,
}

impl Kind {
    /// The cluster of that name, whether it exists or not.
    pub fn named(name: &Name) -> anyhow::Result<Self> {
        let dir = super::local::state_root()?.with_file_name("kind");
        std::fs::create_dir_all(&dir)?;
        Ok(Self {
            name: name.to_string(),
            kubeconfig: dir.join(format!("{name}.kubeconfig")),
        })
    }

    /// Creates the cluster unless it is there.
    pub fn up(name: &Name, nodes: u8) -> anyhow::Result<Self> {
        let kind = Self::named(name)?;
        let known = Cmd::new("kind").args(["get", "clusters"]).output()?;
        if known.lines().any(|line| line == kind.name) {
            kind.command(&["export", "kubeconfig"]).output()?;
            return Ok(kind);
        }
        let config = config(nodes);
        Step::of(format!("create the kind cluster {}", kind.name), |_| {
            kind.command(&["create", "cluster", "--config", "-", "--wait", "120s"])
                .input(config)
                .output()
                .map(drop)
        })?;
        Ok(kind)
    }

    fn command(&self, words: &[&str]) -> Cmd {
        Cmd::new("kind")
            .args(words)
            .args(["--name", &self.name])
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
    }

    /// Its kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone()
    }

    /// Loads an image archive into its nodes.
    pub fn load(&self, archive: &Path) -> anyhow::Result<()> {
        Cmd::new("kind")
            .args(["load", "image-archive"])
            .arg(archive)
            .args(["--name", &self.name])
            .output()
            .map(drop)
    }

    /// Deletes it.
    pub fn down(&self) -> anyhow::Result<()> {
        self.command(&["delete", "cluster"]).output()?;
        match std::fs::remove_file(&self.kubeconfig) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// One control-plane node and workers; image volumes need their gate on older node images.
fn config(nodes: u8) -> String {
    let mut text = "kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n\
                    featureGates: {ImageVolume: true}\nnodes:\n- role: control-plane\n"
        .to_owned();
    for _ in 1..nodes {
        text.push_str("- role: worker\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_is_the_control_plane() {
        assert_eq!(config(1).matches("role:").count(), 1);
        assert_eq!(config(3).matches("role: worker").count(), 2);
    }
}
