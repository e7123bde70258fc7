//! Tells whether a cluster keeps the promises of the KubeVirt API.

mod agent;
mod cli;
mod command;
mod folder;
mod printer;
mod problem;
mod progress;
mod suite;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{cli::Cli, printer::Printer};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let printer = Printer::new();
    match command::dispatch(cli, &printer) {
        Ok(code) => ExitCode::from(code.code()),
        Err(problem) => {
            printer.problem(&problem);
            ExitCode::from(problem.code.code())
        }
    }
}
