//! Installing the reference as a user would: images, the operator's manifest, one KubeVirt resource.

use std::{path::Path, time::Duration};

use anyhow::Context as _;

use crate::{
    cluster::Cluster,
    host, image,
    progress::{Step, say},
};

/// A system that is not deployed after this time will not be.
const PATIENCE: Duration = Duration::from_secs(180);

/// Builds, loads and installs everything; waits until the system says that it is available.
pub fn install(root: &Path, cluster: &Cluster, install_packages: bool) -> anyhow::Result<()> {
    host::ensure(host::IMAGES, install_packages)?;
    host::ensure_rust_targets(&[image::MUSL, image::BARE])?;
    let archives = image::build_all(root)?;
    load(cluster, &archives)?;
    apply(root, cluster)
}

/// Makes the images known to every node.
pub fn load(cluster: &Cluster, archives: &[image::Archive]) -> anyhow::Result<()> {
    Step::of("load the images into the nodes", |step| {
        for archive in archives {
            step.note(&archive.reference);
            cluster.load(&archive.path)?;
        }
        Ok(())
    })
}

/// Applies the manifests and waits for the operator's verdict.
pub fn apply(root: &Path, cluster: &Cluster) -> anyhow::Result<()> {
    let deploy = root.join("reference/deploy");
    let result = Step::of("install the reference", |step| {
        let kubectl = || cluster.kubectl();
        kubectl()
            .args(["apply", "-f"])
            .arg(deploy.join("kubevirt-operator.yaml"))
            .output()?;
        kubectl()
            .args([
                "wait",
                "--for=condition=Established",
                "crd/kubevirts.kubevirt.io",
                "--timeout=30s",
            ])
            .output()?;
        kubectl()
            .args(["apply", "-f"])
            .arg(deploy.join("kubevirt-cr.yaml"))
            .output()?;
        step.note("waiting for the operator");
        let timeout = format!("--timeout={}s", PATIENCE.as_secs());
        kubectl()
            .args([
                "-n",
                "kubevirt",
                "wait",
                "--for=condition=Available",
                "kubevirt/kubevirt",
                &timeout,
            ])
            .output()
            .map(drop)
    });
    if result.is_err() {
        describe(cluster);
    }
    result.context("the reference did not become available")
}

/// What a person would look at first.
fn describe(cluster: &Cluster) {
    for words in [
        &["-n", "kubevirt", "get", "pods", "-o", "wide"][..],
        &[
            "-n",
            "kubevirt",
            "get",
            "kubevirt",
            "kubevirt",
            "-o",
            "jsonpath={.status.conditions}",
        ],
        &[
            "-n",
            "kubevirt",
            "get",
            "events",
            "--sort-by=.lastTimestamp",
        ],
        &[
            "-n",
            "kubevirt",
            "logs",
            "-l",
            "kubevirt.io",
            "--all-containers",
            "--prefix",
            "--tail=15",
        ],
    ] {
        if let Ok(text) = cluster.kubectl().args(words).output() {
            say!("$ kubectl {}\n{}", words.join(" "), text);
        }
    }
}
