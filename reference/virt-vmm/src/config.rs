//! What a caller asks for, and the checks that need nothing but the request itself.

use std::path::PathBuf;

use thiserror::Error;

/// Size of a guest page.
pub const PAGE_SIZE: u64 = 4096;

/// Longest command line, without its final NUL: what x86 Linux accepts.
pub const COMMAND_LINE_MAX: usize = 2047;

/// Least memory: the low mebibyte, which firmware tables use, and one for a kernel.
pub(crate) const MEMORY_MIN: u64 = 2 << 20;

/// A machine to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfig {
    /// Guest memory, a multiple of the page size.
    pub memory_bytes: u64,
    /// Number of vCPUs; this version runs exactly one.
    pub vcpus: u8,
    /// An ELF file with a PVH note.
    pub kernel: PathBuf,
    /// Handed to the kernel as its first module.
    pub initrd: Option<PathBuf>,
    /// Handed to the kernel as it is.
    pub cmdline: String,
    /// Whether the guest can report a panic at port 0x505.
    pub panic_device: bool,
    /// Whether `start` leaves the guest before its first instruction, until `resume`.
    pub start_paused: bool,
    /// Whether a byte written to port 0xF4 ends the machine (for tests).
    pub debug_exit: bool,
}

impl MachineConfig {
    /// A machine with one vCPU, no command line and no options.
    pub fn new(kernel: impl Into<PathBuf>, memory_bytes: u64) -> Self {
        Self {
            memory_bytes,
            vcpus: 1,
            kernel: kernel.into(),
            initrd: None,
            cmdline: String::new(),
            panic_device: false,
            start_paused: false,
            debug_exit: false,
        }
    }

    /// Checks what can be checked without touching a file or KVM.
    ///
    /// # Errors
    /// The first rule that the request breaks.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self.vcpus {
            0 => return Err(ConfigError::NoVcpu),
            1 => {}
            asked => return Err(ConfigError::TooManyVcpus { asked }),
        }
        match self.memory_bytes {
            0 => return Err(ConfigError::NoMemory),
            bytes if bytes % PAGE_SIZE != 0 => return Err(ConfigError::MemoryNotPages { bytes }),
            bytes if bytes < MEMORY_MIN => return Err(ConfigError::MemoryTooSmall { bytes }),
            _ => {}
        }
        if self.cmdline.len() > COMMAND_LINE_MAX {
            return Err(ConfigError::CommandLineTooLong {
                length: self.cmdline.len(),
            });
        }
        match self.cmdline.bytes().position(|byte| byte == 0) {
            Some(at) => Err(ConfigError::CommandLineNul { at }),
            None => Ok(()),
        }
    }
}

/// A request that no machine can be made of.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// Zero vCPUs.
    #[error("a machine needs a vCPU")]
    NoVcpu,
    /// More vCPUs than this version runs.
    #[error("{asked} vCPUs asked for, 1 is supported")]
    TooManyVcpus {
        /// The number asked for.
        asked: u8,
    },
    /// Zero bytes of memory.
    #[error("a machine needs memory")]
    NoMemory,
    /// Memory that ends inside a page.
    #[error("memory of {bytes} bytes is no multiple of the page size {PAGE_SIZE}")]
    MemoryNotPages {
        /// The size asked for.
        bytes: u64,
    },
    /// Memory that leaves no room for a kernel.
    #[error("memory of {bytes} bytes is below the least of {MEMORY_MIN}")]
    MemoryTooSmall {
        /// The size asked for.
        bytes: u64,
    },
    /// A command line that the kernel would cut.
    #[error("command line of {length} bytes is longer than {COMMAND_LINE_MAX}")]
    CommandLineTooLong {
        /// Its length.
        length: usize,
    },
    /// A command line that would end early.
    #[error("command line has a NUL byte at offset {at}")]
    CommandLineNul {
        /// Offset of the byte.
        at: usize,
    },
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn config() -> MachineConfig {
        MachineConfig::new("/kernel", 64 << 20)
    }

    #[rstest]
    #[case::plain(config(), Ok(()))]
    #[case::least(MachineConfig { memory_bytes: MEMORY_MIN, ..config() }, Ok(()))]
    #[case::longest_line(MachineConfig { cmdline: "x".repeat(2047), ..config() }, Ok(()))]
    #[case::no_vcpu(MachineConfig { vcpus: 0, ..config() }, Err(ConfigError::NoVcpu))]
    #[case::two_vcpus(MachineConfig { vcpus: 2, ..config() }, Err(ConfigError::TooManyVcpus { asked: 2 }))]
    #[case::no_memory(MachineConfig { memory_bytes: 0, ..config() }, Err(ConfigError::NoMemory))]
    #[case::odd(MachineConfig { memory_bytes: (64 << 20) + 1, ..config() }, Err(ConfigError::MemoryNotPages { bytes: (64 << 20) + 1 }))]
    #[case::small(MachineConfig { memory_bytes: MEMORY_MIN - 4096, ..config() }, Err(ConfigError::MemoryTooSmall { bytes: MEMORY_MIN - 4096 }))]
    #[case::long(MachineConfig { cmdline: "x".repeat(2048), ..config() }, Err(ConfigError::CommandLineTooLong { length: 2048 }))]
    #[case::nul(MachineConfig { cmdline: "a\0b".to_owned(), ..config() }, Err(ConfigError::CommandLineNul { at: 1 }))]
    fn validates(#[case] config: MachineConfig, #[case] expected: Result<(), ConfigError>) {
        assert_eq!(config.validate(), expected);
    }
}
