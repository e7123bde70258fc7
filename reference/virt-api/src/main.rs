//! Starts the API server of the subresources and webhooks.

use std::process::ExitCode;

use clap::Parser as _;
use virt_api::{app, args::Args};

fn main() -> ExitCode {
    virt_kit::program::run("virt-api", |token| app::run(Args::parse(), token))
}
