//! PID 1 of a virtual machine's pod: takes orders on a socket, runs one machine, and says how it ended.

use std::process::ExitCode;

use clap::Parser;

mod app;
mod args;
mod choice;
mod conductor;
mod files;
#[cfg(test)]
mod fixture;
mod machine;
mod output;
mod reaper;
mod serial;
mod server;
mod supervisor;
mod verdict;

fn main() -> ExitCode {
    app::main(args::Args::parse())
}
