//! The tree of words that `cargo xtask` takes.

use std::{path::PathBuf, process::ExitCode};

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::{
    bench::BenchArgs,
    cluster::{self, ClusterArgs, local::init::NodeInit},
    conformance::ConformanceArgs,
    host, image,
    progress::print_data,
    test::TestArgs,
    tidy,
};

/// Build, test and measure virtmark.
#[derive(Parser, Debug)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    after_help = "Examples:
  cargo xtask conformance                 cluster, reference, scenarios, verdict
  cargo xtask test                        everything that must hold before a change lands
  cargo xtask cluster up --reference      a cluster with the reference, to play with
  cargo xtask bench boot --quick          boot latency beside QEMU"
)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Make, use and remove a Kubernetes cluster.
    Cluster(ClusterArgs),
    /// Run the suite against the reference on a cluster of its own.
    Conformance(ConformanceArgs),
    /// Run every test of the workspace, the real cluster included.
    Test(TestArgs),
    /// Measure.
    Bench(BenchArgs),
    /// Build the container images into target/images/.
    Image {
        /// Do not install missing packages; name them instead.
        #[arg(long)]
        no_install: bool,
    },
    /// Check what no compiler checks: layering, lengths, links.
    Tidy,
    /// PID 1 of a local node.
    #[command(hide = true)]
    NodeInit(NodeInit),
}

impl Cli {
    /// Runs the command.
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Command::NodeInit(init) = &self.command {
            init.run()?;
            return Ok(ExitCode::SUCCESS);
        }
        let root = root()?;
        match &self.command {
            Command::Cluster(args) => return cluster::run(&root, args),
            Command::Conformance(args) => return args.run(&root),
            Command::Test(args) => args.run(&root)?,
            Command::Bench(args) => args.run(&root)?,
            Command::Image { no_install } => {
                host::ensure(host::IMAGES, !no_install)?;
                for archive in image::build_all(&root)? {
                    print_data!(
                        "{} {} {}",
                        archive.reference,
                        archive.digest,
                        archive.path.display()
                    );
                }
            }
            Command::Tidy => tidy::run(&root)?,
            Command::NodeInit(_) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Root of the checkout: cargo tells where this crate is.
fn root() -> anyhow::Result<PathBuf> {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let root = here.parent().context("xtask has no parent folder")?;
    anyhow::ensure!(
        root.join("Cargo.toml").is_file(),
        "{} is not a checkout of virtmark: run cargo xtask inside one",
        root.display()
    );
    Ok(root.to_owned())
}
