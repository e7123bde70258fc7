//! The pinned Go modules: what each of them brings and how it is built.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::digest;
use crate::{progress::Step, run::Cmd};

/// One Go module in `xtask/kubernetes/`.
pub struct Module {
    /// Folder of its go.mod.
    pub name: &'static str,
    /// Programs that it brings.
    pub programs: &'static [&'static str],
    /// The packages that are built, in the same order.
    packages: &'static [&'static str],
    /// Build tags.
    tags: &'static str,
    /// Whether C is compiled too.
    cgo: bool,
    /// Variables that are set at link time, `package.name=value`; `{version}` is the module's version.
    stamps: &'static [&'static str],
    /// How long it takes, for the reader who waits.
    pub takes: &'static str,
    /// Only for clusters with a name server.
    pub only_with_dns: bool,
}

/// All of them, quickest first, so that a mistake shows early.
pub const MODULES: &[Module] = &[
    Module {
        name: "etcd",
        programs: &["etcd"],
        packages: &["go.etcd.io/etcd/server/v3"],
        tags: "",
        cgo: false,
        stamps: &[],
        takes: "half a minute",
        only_with_dns: false,
    },
    Module {
        name: "runc",
        programs: &["runc"],
        packages: &["github.com/opencontainers/runc"],
        tags: "seccomp",
        cgo: true,
        stamps: &["main.version={version}"],
        takes: "half a minute",
        only_with_dns: false,
    },
    Module {
        name: "cni",
        programs: &["bridge", "loopback", "host-local", "portmap"],
        packages: &[
            "github.com/containernetworking/plugins/plugins/main/bridge",
            "github.com/containernetworking/plugins/plugins/main/loopback",
            "github.com/containernetworking/plugins/plugins/ipam/host-local",
            "github.com/containernetworking/plugins/plugins/meta/portmap",
        ],
        tags: "",
        cgo: false,
        stamps: &[],
        takes: "half a minute",
        only_with_dns: false,
    },
    Module {
        name: "containerd",
        programs: &["containerd", "containerd-shim-runc-v2", "ctr"],
        packages: &[
            "github.com/containerd/containerd/v2/cmd/containerd",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/ctr",
        ],
        tags: "no_btrfs no_zfs no_devmapper",
        cgo: false,
        stamps: &[],
        takes: "two minutes",
        only_with_dns: false,
    },
    Module {
        name: "kubernetes",
        programs: &[
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kubectl",
            "kube-proxy",
        ],
        packages: &[
            "k8s.io/kubernetes/cmd/kube-apiserver",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-scheduler",
            "k8s.io/kubernetes/cmd/kubelet",
            "k8s.io/kubernetes/cmd/kubectl",
            "k8s.io/kubernetes/cmd/kube-proxy",
        ],
        tags: "",
        cgo: false,
        // Without these the servers say that they are v0.0.0.
        stamps: &[
            "k8s.io/component-base/version.gitVersion={version}",
            "k8s.io/component-base/version.gitMajor=1",
            "k8s.io/component-base/version.gitMinor={minor}",
            "k8s.io/component-base/version.gitTreeState=clean",
        ],
        takes: "seven minutes",
        only_with_dns: false,
    },
    Module {
        name: "coredns",
        programs: &["coredns"],
        packages: &["github.com/coredns/coredns"],
        tags: "",
        cgo: false,
        stamps: &[],
        takes: "five minutes",
        only_with_dns: true,
    },
];

impl Module {
    fn source(&self, root: &Path) -> PathBuf {
        root.join("xtask/kubernetes").join(self.name)
    }

    /// Where this version of the module, built this way, is kept.
    pub fn dir(&self, root: &Path, cache: &Path) -> anyhow::Result<PathBuf> {
        let mut inputs = Vec::new();
        for file in ["go.mod", "go.sum"] {
            let path = self.source(root).join(file);
            let bytes = std::fs::read(&path)
                .with_context(|| format!("failed to read {}", path.display()))?;
            inputs.extend(bytes);
        }
        inputs.extend(
            format!(
                "{:?} {:?} {} {:?}",
                self.packages, self.tags, self.cgo, self.stamps
            )
            .bytes(),
        );
        Ok(cache.join(format!("{}-{}", self.name, digest(&inputs))))
    }

    /// Builds all programs into a directory.
    pub fn build(&self, root: &Path, out: &Path, step: &Step) -> anyhow::Result<()> {
        let source = self.source(root);
        let version = self.version(&source)?;
        let minor = version.split('.').nth(1).unwrap_or_default();
        let mut link = "-s -w".to_owned();
        for stamp in self.stamps {
            let stamp = stamp
                .replace("{version}", &version)
                .replace("{minor}", minor);
            link.push_str(&format!(" -X {stamp}"));
        }
        for (program, package) in self.programs.iter().zip(self.packages) {
            step.note(program);
            Cmd::new("go")
                .args([
                    "build",
                    "-trimpath",
                    "-tags",
                    self.tags,
                    "-ldflags",
                    &link,
                    "-o",
                ])
                .arg(out.join(program))
                .arg(package)
                .env("CGO_ENABLED", if self.cgo { "1" } else { "0" })
                .env("GOFLAGS", "-buildvcs=false")
                .dir(&source)
                .output()?;
        }
        Ok(())
    }

    /// Version of the module that the first package belongs to.
    fn version(&self, source: &Path) -> anyhow::Result<String> {
        let package = self.packages.first().context("a module without packages")?;
        let text = Cmd::new("go")
            .args(["list", "-f", "{{with .Module}}{{.Version}}{{end}}", package])
            .dir(source)
            .output()?;
        Ok(text.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_has_its_package() {
        for module in MODULES {
            assert_eq!(
                module.programs.len(),
                module.packages.len(),
                "{}",
                module.name
            );
        }
    }
}
