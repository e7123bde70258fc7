//! Starts the node agent.

use std::process::ExitCode;

use clap::Parser as _;
use virt_handler::{app, args::Args};

fn main() -> ExitCode {
    virt_kit::program::run("virt-handler", |token| app::run(Args::parse(), token))
}
