//! Container images from our own binaries: built for musl, packed by our own writer, no container
//! tool needed. Archives land in `target/images/`, with a file beside each that names its digest.

mod build;
mod catalog;
pub mod layer;
pub mod oci;
pub mod qemu;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
pub use build::{build_probe, target_dir};

use crate::progress::Step;

/// Target of programs in images.
pub const MUSL: &str = "x86_64-unknown-linux-musl";
/// Target of the probe guest.
pub const BARE: &str = "x86_64-unknown-none";

/// One archive on disk.
#[derive(Clone, Debug)]
pub struct Archive {
    /// Full image reference.
    pub reference: String,
    /// Digest of the manifest.
    pub digest: String,
    /// The tar file.
    pub path: PathBuf,
}

/// Builds all images; binaries that are up to date cost a second.
pub fn build_all(root: &Path) -> anyhow::Result<Vec<Archive>> {
    let programs = Step::of("build the components for images", |_| build::programs(root))?;
    let probe = Step::of("build the probe guest", |_| build::build_probe(root))?;
    let out = root.join("target/images");
    std::fs::create_dir_all(&out).with_context(|| format!("failed to make {}", out.display()))?;
    Step::of("pack the images", |_| {
        catalog::images(&programs, &probe)?
            .into_iter()
            .map(|(name, image)| {
                let path = out.join(format!("{name}.tar"));
                let digest = oci::write_archive(&path, &image)?;
                Ok(Archive {
                    reference: image.reference,
                    digest,
                    path,
                })
            })
            .collect()
    })
}
