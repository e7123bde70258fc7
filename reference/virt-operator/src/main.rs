//! virt-operator: turns a KubeVirt resource into a running system and reports how far it is.

mod app;
mod apply;
mod certs;
mod install;
mod reconcile;
mod render;
mod status;
mod teardown;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = app::Args::parse();
    virt_kit::program::run("virt-operator", |token| app::run(args, token))
}
