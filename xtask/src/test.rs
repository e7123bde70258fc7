//! `cargo xtask test`: everything that must hold before a change lands, cheapest first. A failing run
//! says which stage failed, and goes on with the stages that do not depend on it.

mod cluster_stages;

use std::path::Path;

use clap::Args;

use crate::{
    host, image,
    progress::{Step, say},
    run::Cmd,
    tidy,
};

#[derive(Args, Debug)]
#[command(after_help = "Examples:
  cargo xtask test               everything
  cargo xtask test --no-cluster  what needs no cluster
  cargo xtask test --stage tidy  one stage")]
pub struct TestArgs {
    /// Leave out the stages that need a cluster.
    #[arg(long)]
    no_cluster: bool,

    /// Run only the stages whose name contains this.
    #[arg(long, value_name = "WORD")]
    stage: Option<String>,

    /// Do not install missing packages; name them instead.
    #[arg(long)]
    no_install: bool,
}

/// Name of a stage and how it went.
struct Outcome {
    stage: &'static str,
    error: Option<anyhow::Error>,
}

impl TestArgs {
    /// Runs all stages; an error names those that failed.
    pub fn run(&self, root: &Path) -> anyhow::Result<()> {
        self.prepare()?;
        let mut outcomes = Vec::new();
        let wanted = |name: &str| self.stage.as_deref().is_none_or(|word| name.contains(word));
        let mut stage = |name: &'static str, work: &dyn Fn() -> anyhow::Result<()>| {
            if !wanted(name) {
                return;
            }
            say!("\n== {name}");
            let error = work().err();
            if let Some(error) = &error {
                say!("== {name}: FAILED: {error:#}");
            }
            outcomes.push(Outcome { stage: name, error });
        };
        stage("format", &|| format(root));
        stage("tidy", &|| tidy::run(root));
        stage("clippy", &|| clippy(root));
        stage("tests of the workspace", &|| workspace_tests(root));
        if !self.no_cluster {
            let install = !self.no_install;
            stage("clusters leave nothing behind", &|| {
                cluster_stages::leaves_nothing(root, install)
            });
            stage("conformance and faults", &|| {
                cluster_stages::conformance(root, install)
            });
        }
        anyhow::ensure!(!outcomes.is_empty(), "no stage has that name");
        summary(&outcomes)
    }

    fn prepare(&self) -> anyhow::Result<()> {
        let install = !self.no_install;
        host::ensure(host::IMAGES, install)?;
        host::ensure_rust_targets(&[image::MUSL, image::BARE])
    }
}

fn format(root: &Path) -> anyhow::Result<()> {
    cargo(root, "cargo fmt --check", &["fmt", "--all", "--check"])?;
    let probe = root.join("conformance/probe/Cargo.toml");
    let manifest = probe.to_string_lossy();
    cargo(
        root,
        "cargo fmt --check (probe guest)",
        &["fmt", "--check", "--manifest-path", &manifest],
    )
}

fn clippy(root: &Path) -> anyhow::Result<()> {
    let words = [
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    cargo(root, "cargo clippy", &words)
}

fn workspace_tests(root: &Path) -> anyhow::Result<()> {
    let probe = Step::of("build the probe guest", |_| image::build_probe(root))?;
    Step::of("build the tests", |_| {
        Cmd::new("cargo")
            .args(["test", "--quiet", "--workspace", "--no-run"])
            .dir(root)
            .check()
    })?;
    Step::of("run the tests", |_| {
        Cmd::new("cargo")
            .args(["test", "--workspace", "--no-fail-fast"])
            .env("PROBE_ELF", &probe.kernel)
            .env("PROBE_DISK", &probe.disk)
            .env("INSTA_UPDATE", "no")
            .dir(root)
            .check()
    })
}

fn cargo(root: &Path, what: &str, words: &[&str]) -> anyhow::Result<()> {
    Step::of(what, |_| Cmd::new("cargo").args(words).dir(root).check())
}

fn summary(outcomes: &[Outcome]) -> anyhow::Result<()> {
    say!("\n== summary");
    for outcome in outcomes {
        let word = if outcome.error.is_some() {
            "FAILED"
        } else {
            "ok"
        };
        say!("{word:>6}  {}", outcome.stage);
    }
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|o| o.error.is_some())
        .map(|o| o.stage)
        .collect();
    say!(
        "{} passed, {} failed",
        outcomes.len() - failed.len(),
        failed.len()
    );
    anyhow::ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}
