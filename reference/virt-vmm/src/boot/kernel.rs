//! The files of a boot and their way into guest memory. The files stay open, so that a reset loads the same again even
//! when their names have gone.

use std::fs::File;
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};

use thiserror::Error;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

use crate::acpi;
use crate::boot::{elf, pvh};
use crate::config::{MachineConfig, PAGE_SIZE};
use crate::memory::layout::{self, Span};

/// What the first bytes of a kernel file say it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelKind {
    /// An ELF file.
    Elf,
    /// A Linux bzImage.
    BzImage,
    /// A gzip stream.
    Gzip,
    /// A zstd stream.
    Zstd,
    /// None of these.
    Unknown,
}

impl KernelKind {
    /// Looks at the magic numbers.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.starts_with(b"\x7fELF") {
            Self::Elf
        } else if bytes.get(0x202..0x206) == Some(b"HdrS") {
            Self::BzImage
        } else if bytes.starts_with(&[0x1f, 0x8b]) {
            Self::Gzip
        } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
            Self::Zstd
        } else {
            Self::Unknown
        }
    }
}

/// A kernel that cannot be booted. Each variant names what is wrong with the file.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The file cannot be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The path names a directory, a pipe or a device.
    #[error("{} is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file is larger than the guest's memory could ever hold.
    #[error("{} has {bytes} bytes, more than the limit of {limit}", path.display())]
    FileTooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The largest accepted.
        limit: u64,
    },
    /// The file is no ELF file.
    #[error("the kernel is of kind {kind:?}, an ELF file with a PVH note is needed")]
    Kind {
        /// What it looks like.
        kind: KernelKind,
    },
    /// The ELF file is for another machine, or no program.
    #[error("the kernel is not an x86 ELF program: {field} is {value}")]
    Foreign {
        /// The header field.
        field: &'static str,
        /// Its value.
        value: u16,
    },
    /// The file ends before something that its headers announce.
    #[error("the kernel file ends before its {what}")]
    Truncated {
        /// What is missing.
        what: &'static str,
    },
    /// A segment holds more bytes in the file than in memory.
    #[error("kernel segment {index} is longer in the file than in memory")]
    SegmentShrinks {
        /// Number of the program header.
        index: usize,
    },
    /// There is nothing to load.
    #[error("the kernel has no loadable segment")]
    NothingToLoad,
    /// The file has no PVH entry point.
    #[error("the kernel has no PVH entry note")]
    NoPvhNote,
    /// A segment does not fit the guest's memory.
    #[error(
        "kernel bytes {start:#x}+{size:#x} lie outside of the guest's memory {low:#x}..{high:#x}"
    )]
    OutsideMemory {
        /// Where the segment starts.
        start: u64,
        /// Its size.
        size: u64,
        /// First usable address.
        low: u64,
        /// Address after the last usable one.
        high: u64,
    },
    /// Two segments claim the same address.
    #[error("kernel segments overlap at {start:#x}")]
    SegmentsOverlap {
        /// Start of the later segment.
        start: u64,
    },
    /// The entry point is in no segment.
    #[error("the kernel's entry point {entry:#x} is in none of its segments")]
    EntryOutside {
        /// The entry point.
        entry: u64,
    },
    /// The initrd and the kernel do not fit together.
    #[error("an initrd of {bytes} bytes does not fit above the kernel")]
    InitrdDoesNotFit {
        /// Its size.
        bytes: u64,
    },
    /// Guest memory refused a write; the checks above should make that impossible.
    #[error("failed to write the kernel into guest memory")]
    Write {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The open files that a machine boots from.
#[derive(Debug)]
pub(crate) struct BootFiles {
    kernel: OpenFile,
    initrd: Option<OpenFile>,
    cmdline: String,
    vcpus: u8,
}

#[derive(Debug)]
struct OpenFile {
    path: PathBuf,
    file: File,
}

impl BootFiles {
    pub(crate) fn open(config: &MachineConfig) -> Result<Self, KernelError> {
        Ok(Self {
            kernel: OpenFile::open(&config.kernel)?,
            initrd: config.initrd.as_deref().map(OpenFile::open).transpose()?,
            cmdline: config.cmdline.clone(),
            vcpus: config.vcpus,
        })
    }
}

impl OpenFile {
    fn open(path: &Path) -> Result<Self, KernelError> {
        let failed = |source| KernelError::Read {
            path: path.to_owned(),
            source,
        };
        // Asked before opening: opening a pipe would wait for its writer.
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(KernelError::NotAFile {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            file: File::open(path).map_err(failed)?,
        })
    }

    /// All bytes, from the start, if there are at most `limit`.
    fn read(&mut self, limit: u64) -> Result<Vec<u8>, KernelError> {
        let failed = |source| KernelError::Read {
            path: self.path.clone(),
            source,
        };
        let bytes = self.file.metadata().map_err(failed)?.len();
        if bytes > limit {
            return Err(KernelError::FileTooLarge {
                path: self.path.clone(),
                bytes,
                limit,
            });
        }
        self.file.rewind().map_err(failed)?;
        let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or_default());
        self.file
            .by_ref()
            .take(limit)
            .read_to_end(&mut content)
            .map_err(failed)?;
        Ok(content)
    }
}

/// Debug information may make a kernel file larger than what is loaded of it; this bounds what is read.
const KERNEL_FILE_MAX: u64 = 1 << 30;

/// Loads everything a boot needs into zeroed memory and returns the 32-bit entry point.
pub(crate) fn load(
    files: &mut BootFiles,
    memory: &GuestMemoryMmap,
    spans: &[Span],
) -> Result<u64, KernelError> {
    let window = layout::kernel_window(spans);
    let kernel = files.kernel.read(KERNEL_FILE_MAX)?;
    let plan = elf::plan(&kernel)?;
    plan.check(window)?;
    for segment in &plan.segments {
        let bytes = kernel
            .get(segment.file.clone())
            .ok_or(KernelError::Truncated { what: "segment" })?;
        write(memory, segment.target.start, bytes)?;
    }
    let initrd = match &mut files.initrd {
        None => None,
        Some(file) => {
            let bytes = file.read(window.size)?;
            let span = place_initrd(window, plan.end(), bytes.len() as u64)?;
            write(memory, span.start, &bytes)?;
            Some(span)
        }
    };
    let mut cmdline = files.cmdline.clone().into_bytes();
    cmdline.push(0);
    write(memory, layout::COMMAND_LINE, &cmdline)?;
    write(
        memory,
        layout::ACPI_TABLES,
        &acpi::tables(layout::ACPI_TABLES, files.vcpus),
    )?;
    for (address, bytes) in pvh::blocks(&layout::memory_map(spans), initrd) {
        write(memory, address, &bytes)?;
    }
    Ok(plan.entry)
}

/// As high as it fits, on a page, above the kernel.
fn place_initrd(window: Span, kernel_end: u64, bytes: u64) -> Result<Span, KernelError> {
    let start = window
        .end()
        .checked_sub(bytes)
        .map(|start| start - start % PAGE_SIZE);
    match start {
        Some(start) if start >= kernel_end => Ok(Span { start, size: bytes }),
        _ => Err(KernelError::InitrdDoesNotFit { bytes }),
    }
}

fn write(memory: &GuestMemoryMmap, address: u64, bytes: &[u8]) -> Result<(), KernelError> {
    memory
        .write_slice(bytes, GuestAddress(address))
        .map_err(|source| KernelError::Write {
            source: Box::new(source),
        })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::elf(b"\x7fELF\x02".to_vec(), KernelKind::Elf)]
    #[case::gzip(vec![0x1f, 0x8b, 8], KernelKind::Gzip)]
    #[case::zstd(vec![0x28, 0xb5, 0x2f, 0xfd], KernelKind::Zstd)]
    #[case::bzimage([vec![0; 0x202], b"HdrS".to_vec()].concat(), KernelKind::BzImage)]
    #[case::empty(vec![], KernelKind::Unknown)]
    #[case::text(b"#!/bin/sh".to_vec(), KernelKind::Unknown)]
    fn knows_kernels_by_their_magic(#[case] bytes: Vec<u8>, #[case] kind: KernelKind) {
        assert_eq!(KernelKind::of(&bytes), kind);
    }

    #[rstest]
    #[case::fits(0x20_0000, 0x1001, Some(0x3f_e000))]
    #[case::exactly(0x20_0000, 0x20_0000, Some(0x20_0000))]
    #[case::one_too_many(0x20_0000, 0x20_0001, None)]
    #[case::larger_than_memory(0x20_0000, 0x100_0000, None)]
    fn initrd_goes_as_high_as_it_fits(
        #[case] kernel_end: u64,
        #[case] bytes: u64,
        #[case] start: Option<u64>,
    ) {
        let window = Span {
            start: 0x10_0000,
            size: 0x30_0000,
        };
        assert_eq!(
            place_initrd(window, kernel_end, bytes)
                .ok()
                .map(|span| span.start),
            start
        );
    }

    #[test]
    fn a_directory_is_no_kernel() {
        assert!(matches!(
            OpenFile::open(Path::new("/")),
            Err(KernelError::NotAFile { .. })
        ));
    }
}
