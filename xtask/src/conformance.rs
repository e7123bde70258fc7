//! `cargo xtask conformance`: the main job, end to end. A cluster, the reference, the suite, a verdict.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;

use crate::{
    cluster::{self, Cluster, Make, Provider, Which},
    host, image,
    progress::{Step, say},
    reference,
    run::Cmd,
};

/// Name of the cluster that a run makes for itself.
const NAME: &str = "conformance";

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask conformance                            everything, on a fresh cluster
  cargo xtask conformance -- --id VM-LIFE-0001       one scenario
  cargo xtask conformance --keep-cluster             leave the cluster for a look
  cargo xtask conformance --kubeconfig FILE          a cluster that has the system already

What follows -- goes to `virtmark run`.")]
pub struct ConformanceArgs {
    /// Do not take the cluster down afterwards.
    #[arg(long)]
    keep_cluster: bool,

    /// Where the cluster comes from.
    #[arg(long, value_enum, default_value_t = Provider::Auto)]
    provider: Provider,

    /// kubeconfig of a cluster that has the system installed already: nothing is installed or removed.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,

    /// Number of nodes.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=9))]
    nodes: u8,

    /// Do not install missing packages; name them instead.
    #[arg(long)]
    no_install: bool,

    /// Use the Kubernetes programs in this directory instead of building them.
    #[arg(long)]
    k8s_bin_dir: Option<PathBuf>,

    /// Words for `virtmark run`.
    #[arg(last = true)]
    suite: Vec<String>,
}

impl ConformanceArgs {
    /// The same run with nothing special.
    pub fn plain(no_install: bool) -> Self {
        Self {
            keep_cluster: false,
            provider: Provider::Auto,
            kubeconfig: None,
            nodes: 2,
            no_install,
            k8s_bin_dir: None,
            suite: Vec::new(),
        }
    }

    /// Runs; the exit code is the suite's.
    pub fn run(&self, root: &Path) -> anyhow::Result<ExitCode> {
        if self.kubeconfig.is_some() {
            let suite = build_suite(root)?;
            let cluster = cluster::find(&self.make()?.which)?;
            return run_suite(root, &suite, &cluster, &self.suite);
        }
        let prepared = self.prepare(root)?;
        let result = run_suite(root, &prepared.suite, &prepared.cluster, &self.suite);
        if self.keep_cluster {
            say!(
                "the cluster stays: export KUBECONFIG={}",
                prepared.cluster.kubeconfig().display()
            );
            say!("take it down with: cargo xtask cluster down --name {NAME}");
        } else {
            prepared.cluster.down()?;
        }
        result
    }

    /// Everything up to the point where the suite can run.
    pub fn prepare(&self, root: &Path) -> anyhow::Result<Prepared> {
        let install = !self.no_install;
        host::ensure(host::IMAGES, install)?;
        host::ensure_rust_targets(&[image::MUSL, image::BARE])?;
        let archives = image::build_all(root)?;
        let suite = build_suite(root)?;
        let cluster = cluster::up(root, &self.make()?)?;
        let installed =
            reference::load(&cluster, &archives).and_then(|()| reference::apply(root, &cluster));
        if let Err(error) = installed {
            if !self.keep_cluster {
                cluster.down()?;
            }
            return Err(error);
        }
        Ok(Prepared { cluster, suite })
    }

    fn make(&self) -> anyhow::Result<Make> {
        Ok(Make {
            which: Which {
                name: NAME.parse()?,
                provider: self.provider,
                kubeconfig: self.kubeconfig.clone(),
            },
            nodes: self.nodes,
            node_cpus: None,
            dns: false,
            no_install: self.no_install,
            k8s_bin_dir: self.k8s_bin_dir.clone(),
        })
    }
}

/// A cluster with the reference, and the suite's program.
pub struct Prepared {
    /// The cluster.
    pub cluster: Cluster,
    /// The program `virtmark`.
    pub suite: PathBuf,
}

/// Builds the suite's program for this machine, with the features of the whole workspace, so that
/// dependencies which the tests have built are not built again.
pub fn build_suite(root: &Path) -> anyhow::Result<PathBuf> {
    Step::of("build the suite", |_| {
        Cmd::new("cargo")
            .args(["build", "--quiet", "--workspace", "--bin", "virtmark"])
            .dir(root)
            .check()
    })?;
    Ok(image::target_dir(root).join("debug/virtmark"))
}

/// `virtmark run` for a cluster, without a selection.
pub fn suite_command(root: &Path, suite: &Path, cluster: &Cluster) -> Cmd {
    Cmd::new(suite)
        .arg("run")
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig())
        .args(["--platform", "reference"])
        .dir(root)
}

/// Runs the suite with this terminal; its exit code is the answer.
pub fn run_suite(
    root: &Path,
    suite: &Path,
    cluster: &Cluster,
    words: &[String],
) -> anyhow::Result<ExitCode> {
    let status = suite_command(root, suite, cluster).args(words).status()?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(70);
    Ok(ExitCode::from(code))
}
