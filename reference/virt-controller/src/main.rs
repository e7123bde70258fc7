//! Makes VMIs from VMs and launcher pods from VMIs, and keeps their status true.

mod app;
mod args;
mod context;
mod finalizer;
mod kubevirt;
mod node;
mod patch;
mod queue;
mod vm;
mod vmi;
mod watch;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let args = args::Args::parse();
    virt_kit::program::run("virt-controller", |token| app::run(args, token))
}
