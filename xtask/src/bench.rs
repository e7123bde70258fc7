//! `cargo xtask bench`: builds the bench program with optimisation and runs it.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::{host, image, progress::Step, run::Cmd};

#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: Bench,
}

#[derive(Subcommand, Debug)]
enum Bench {
    /// Boot latency of the probe guest: our machine and QEMU, interleaved in one run.
    Boot {
        /// Fewer rounds.
        #[arg(long)]
        quick: bool,
        /// Write the rows here too.
        #[arg(long)]
        json: Option<PathBuf>,
        /// Also run the criterion groups.
        #[arg(long)]
        criterion: bool,
        /// Do not install missing packages; name them instead.
        #[arg(long)]
        no_install: bool,
    },
}

impl BenchArgs {
    /// Runs the bench with this terminal.
    pub fn run(&self, root: &Path) -> anyhow::Result<()> {
        let Bench::Boot {
            quick,
            json,
            criterion,
            no_install,
        } = &self.what;
        host::ensure(host::IMAGES, !no_install)?;
        host::ensure_rust_targets(&[image::BARE, image::MUSL])?;
        let probe = Step::of("build the probe guest", |_| image::build_probe(root))?;
        // Static, as in an image: a dynamic loader would be most of the time to the first byte.
        Step::of("build the bench", |_| {
            Cmd::new("cargo")
                .args(["build", "--quiet", "--release", "--target", image::MUSL])
                .args(["--package", "benches", "--bins"])
                .dir(root)
                .check()
        })?;
        let programs = image::target_dir(root).join(image::MUSL).join("release");
        let mut command = Cmd::new(programs.join("benches")).arg("boot");
        if *quick {
            command = command.arg("--quick");
        }
        if let Some(json) = json {
            command = command.arg("--json").arg(json);
        }
        command.env("PROBE_ELF", &probe.kernel).dir(root).check()?;
        if *criterion {
            Cmd::new("cargo")
                .args(["bench", "--package", "benches"])
                .env("PROBE_ELF", &probe.kernel)
                .dir(root)
                .check()?;
        }
        Ok(())
    }
}
