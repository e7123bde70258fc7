//! What the host has to offer: rights, packages, Rust targets. What is missing is installed where we
//! may, and named in one message where we may not.

use std::path::Path;

use crate::{progress::Step, run::Cmd};

/// Something of the host that a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// A program that shows whether it is there, or a file.
    pub witness: Witness,
    /// Debian's package that brings it.
    pub package: &'static str,
    /// What it is for.
    pub purpose: &'static str,
}

/// How to see that something is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Witness {
    /// A program on PATH or in the system's directories.
    Program(&'static str),
    /// A file.
    File(&'static str),
}

const fn program(name: &'static str, package: &'static str, purpose: &'static str) -> Need {
    Need {
        witness: Witness::Program(name),
        package,
        purpose,
    }
}

/// To run local clusters.
pub const CLUSTER: &[Need] = &[
    program("ip", "iproute2", "networks of the nodes"),
    program("iptables", "iptables", "Services"),
    program("iptables-save", "iptables", "Services"),
    program("conntrack", "conntrack", "Services"),
    program("mount", "mount", "nodes"),
    program("unshare", "util-linux", "nodes"),
];

/// To build Kubernetes and its container runtime.
pub const TOOLS: &[Need] = &[
    program("gcc", "gcc", "the container runtime"),
    program("pkg-config", "pkg-config", "the container runtime"),
    Need {
        witness: Witness::File("/usr/include/seccomp.h"),
        package: "libseccomp-dev",
        purpose: "the container runtime",
    },
];

/// To build images.
pub const IMAGES: &[Need] = &[
    program("gcc", "gcc", "static programs"),
    program("musl-gcc", "musl-tools", "static programs"),
    program(
        "qemu-system-x86_64",
        "qemu-system-x86",
        "the launcher's emulator",
    ),
];

/// Installs what is missing, or says what is.
pub fn ensure(needs: &[Need], install: bool) -> anyhow::Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !need.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<&str> = missing.iter().map(|need| need.package).collect();
    packages.sort_unstable();
    packages.dedup();
    let list = packages.join(" ");
    if !install || !is_root() || !has_program("apt-get") {
        let purposes: Vec<String> = missing
            .iter()
            .map(|n| format!("  {} (for {})", n.package, n.purpose))
            .collect();
        anyhow::bail!(
            "these packages are missing (Debian's names):\n{}\nas root: apt-get install {list}",
            purposes.join("\n")
        );
    }
    Step::of(format!("install packages: {list}"), |_| {
        let apt = |words: &[&str]| {
            Cmd::new("apt-get")
                .args(["-qq", "-o", "DPkg::Lock::Timeout=120"])
                .args(words)
                .env("DEBIAN_FRONTEND", "noninteractive")
                .output()
                .map(drop)
        };
        apt(&["update"])?;
        apt(&[
            &["install", "-y", "--no-install-recommends"],
            packages.as_slice(),
        ]
        .concat())
    })
}

/// Adds Rust targets that are missing, through rustup.
pub fn ensure_rust_targets(targets: &[&str]) -> anyhow::Result<()> {
    let sysroot = Cmd::new("rustc").args(["--print", "sysroot"]).output()?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib");
    for target in targets {
        if library.join(target).join("lib").exists() {
            continue;
        }
        anyhow::ensure!(
            has_program("rustup"),
            "the Rust target {target} is missing: install rustup, or your distribution's package of it"
        );
        Step::of(format!("add the Rust target {target}"), |_| {
            Cmd::new("rustup")
                .args(["target", "add", target])
                .output()
                .map(drop)
        })?;
    }
    Ok(())
}

/// Fails with a remedy when this is not root.
pub fn require_root(what: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        is_root(),
        "{what} needs root, for namespaces and networks: run it with sudo, or use --provider kind or --provider existing"
    );
    Ok(())
}

/// Whether this is root.
#[must_use]
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether a program is on PATH or where administrators' programs are.
#[must_use]
pub fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let extra = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path)
        .chain(extra)
        .any(|dir| dir.join(name).is_file())
}

impl Need {
    fn is_there(&self) -> bool {
        match self.witness {
            Witness::Program(name) => has_program(name),
            Witness::File(path) => Path::new(path).exists(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_purpose() {
        let need = program("no-such-program", "no-such-package", "this test");
        let error = ensure(&[need], false).unwrap_err().to_string();
        assert!(error.contains("no-such-package (for this test)"), "{error}");
        assert!(error.contains("apt-get install no-such-package"), "{error}");
    }

    #[test]
    fn what_is_there_needs_nothing() {
        assert!(ensure(&[program("sh", "dash", "this test")], false).is_ok());
    }
}
