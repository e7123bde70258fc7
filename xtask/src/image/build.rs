//! Compiling what goes into images: static programs for musl, and the probe guest.

use std::path::{Path, PathBuf};

use super::{BARE, MUSL, catalog::COMPONENTS};
use crate::run::Cmd;

/// The compiled components.
pub struct Programs {
    dir: PathBuf,
}

impl Programs {
    /// Path of a component's program.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// The compiled probe guest.
#[derive(Clone, Debug)]
pub struct Probe {
    /// ELF that boots directly.
    pub kernel: PathBuf,
    /// Raw disk that boots by BIOS.
    pub disk: PathBuf,
}

/// Builds the components, static and with no path of this machine in them.
pub fn programs(root: &Path) -> anyhow::Result<Programs> {
    let packages = COMPONENTS.iter().flat_map(|name| ["--package", name]);
    Cmd::new("cargo")
        .args(["build", "--quiet", "--profile", "image", "--target", MUSL])
        .args(packages)
        .dir(root)
        .env("CC_x86_64_unknown_linux_musl", "musl-gcc")
        .env(
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
            remap(root),
        )
        .check()?;
    Ok(Programs {
        dir: target_dir(root).join(MUSL).join("image"),
    })
}

/// Builds the probe guest and packs its disk.
pub fn build_probe(root: &Path) -> anyhow::Result<Probe> {
    let target = target_dir(root);
    let manifest = root.join("conformance/probe/Cargo.toml");
    Cmd::new("cargo")
        .args([
            "build",
            "--quiet",
            "--release",
            "--target",
            BARE,
            "--manifest-path",
        ])
        .arg(&manifest)
        .arg("--target-dir")
        .arg(target.join("probe"))
        .dir(root)
        .check()?;
    let dir = target.join("probe").join(BARE).join("release");
    let probe = Probe {
        kernel: dir.join("probe"),
        disk: target.join("probe/probe.img"),
    };
    Cmd::new("cargo")
        .args(["run", "--quiet", "--package", "probe-image", "--"])
        .arg(&probe.kernel)
        .arg(dir.join("boot-sector"))
        .arg(&probe.disk)
        .dir(root)
        .check()?;
    Ok(probe)
}

/// Where cargo puts what it builds.
pub fn target_dir(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The same source gives the same program wherever it is checked out.
fn remap(root: &Path) -> String {
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
        PathBuf::from,
    );
    format!(
        "--remap-path-prefix={}=/virtmark --remap-path-prefix={}=/cargo",
        root.display(),
        cargo_home.display()
    )
}
