//! The emulator's layer: the host package's program, its libraries and the firmware that it opens.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::Context as _;

use super::layer::{Entry, Layer};
use crate::run::Cmd;

/// The emulator as Debian and its relatives install it.
pub const QEMU: &str = "/usr/bin/qemu-system-x86_64";

/// Firmware and option ROMs that q35, pc and microvm open without a VGA device. Each name is looked
/// up in the directories where distributions put such files.
const FIRMWARE: &[&str] = &[
    "pvh.bin",
    "linuxboot_dma.bin",
    "kvmvapic.bin",
    "qboot.rom",
    "bios-256k.bin",
    "bios-microvm.bin",
];
const FIRMWARE_DIRS: &[&str] = &["/usr/share/qemu", "/usr/share/seabios"];

/// Accelerators and devices that the package loads as modules.
const MODULES: &[&str] = &["accel-tcg-x86_64.so"];

/// Collects the layer from this machine's package.
pub fn layer() -> anyhow::Result<Layer> {
    let mut layer = Layer::default();
    let qemu = Path::new(QEMU);
    anyhow::ensure!(
        qemu.exists(),
        "{QEMU} is missing: install the package qemu-system-x86"
    );
    layer.put(QEMU, Entry::File(qemu.to_owned(), 0o755));
    let mut programs = vec![qemu.to_owned()];
    for module in MODULES {
        if let Some(path) = find_module(module) {
            layer.put(&path.to_string_lossy(), Entry::File(path.clone(), 0o644));
            programs.push(path);
        }
    }
    for library in libraries(&programs)? {
        let real = library
            .canonicalize()
            .with_context(|| format!("failed to find {}", library.display()))?;
        layer.put(&library.to_string_lossy(), Entry::File(real, 0o755));
    }
    for name in FIRMWARE {
        let found = FIRMWARE_DIRS
            .iter()
            .map(|dir| Path::new(dir).join(name))
            .find(|p| p.exists());
        let path = found.with_context(|| format!("firmware {name} is not in {FIRMWARE_DIRS:?}"))?;
        let real = path.canonicalize()?;
        // The emulator looks in its own data directory first, whichever package brought the file.
        layer.put(&format!("usr/share/qemu/{name}"), Entry::File(real, 0o644));
    }
    Ok(layer)
}

fn find_module(name: &str) -> Option<PathBuf> {
    [
        "/usr/lib/x86_64-linux-gnu/qemu",
        "/usr/lib/qemu",
        "/usr/lib64/qemu",
    ]
    .iter()
    .map(|dir| Path::new(dir).join(name))
    .find(|path| path.exists())
}

/// The shared libraries that programs need, loader included.
fn libraries(programs: &[PathBuf]) -> anyhow::Result<BTreeSet<PathBuf>> {
    let mut all = BTreeSet::new();
    for program in programs {
        let text = Cmd::new("ldd").arg(program).output()?;
        all.extend(
            parse_ldd(&text)
                .into_iter()
                .filter(|path| !programs.contains(path)),
        );
    }
    Ok(all)
}

/// Paths in the output of `ldd`.
fn parse_ldd(text: &str) -> Vec<PathBuf> {
    text.lines()
        .filter_map(|line| {
            let line = line.trim();
            let path = line.split(" => ").last()?.split_whitespace().next()?;
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n\
                    \tlibgone.so => not found\n";
        let want = [
            "/lib/x86_64-linux-gnu/libz.so.1",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(parse_ldd(text), want.map(PathBuf::from));
    }
}
