//! `benches boot`: the interleaved boot bench.

use clap::{Parser, Subcommand};

use benches::boot::{self, BootArguments};

/// Benches that are more than a criterion group.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  benches boot --probe target/probe/x86_64-unknown-none/release/probe --quick
  benches boot --probe probe --candidates own,qemu-pc-kvm --json rows.json")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// From process start to the guest's first byte and to the process's end, against QEMU
    Boot(BootArguments),
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Boot(arguments) => boot::bench(&arguments),
    }
}
