//! `probe-image PROBE BOOT_SECTOR IMAGE`: writes the probe's disk image.

use std::path::PathBuf;

use anyhow::Context;
use clap::Parser;

/// Packs the probe guest into a bootable raw disk image.
#[derive(Debug, Parser)]
#[command(
    after_help = "Example:\n  probe-image target/probe/x86_64-unknown-none/release/{probe,boot-sector} probe.img"
)]
struct Arguments {
    /// The probe's kernel, an ELF file
    probe: PathBuf,
    /// The probe's boot sector, an ELF file
    boot_sector: PathBuf,
    /// The image to write
    image: PathBuf,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let read = |path: &PathBuf| {
        std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))
    };
    let image = probe_image::pack(&read(&arguments.probe)?, &read(&arguments.boot_sector)?)?;
    std::fs::write(&arguments.image, image)
        .with_context(|| format!("failed to write {}", arguments.image.display()))
}
