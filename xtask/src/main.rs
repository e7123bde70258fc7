//! The project's own commands. Heavy tools are executed, never linked, so that this program compiles
//! in seconds and knows neither half of the project.

mod bench;
mod cli;
mod cluster;
mod conformance;
mod host;
mod image;
mod lock;
mod progress;
mod reference;
mod run;
mod selftest;
mod test;
mod tidy;
mod tools;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(code) => code,
        Err(error) => {
            progress::line(&format!("error: {error}"));
            for cause in error.chain().skip(1) {
                progress::line(&format!("  because: {cause}"));
            }
            ExitCode::FAILURE
        }
    }
}
