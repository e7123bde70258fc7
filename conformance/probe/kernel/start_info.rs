//! The start block: command line, memory map and root pointer, from a PVH loader or from our own boot sector.

use crate::hardware::memory;

const MAGIC: u32 = 0x336e_c578;
/// What our boot sector puts into the reserved word.
const DISK: u32 = 0x4b53_4944;
const LONGEST_CMDLINE: usize = 4096;
const USABLE: u32 = 1;

/// What the block says.
pub struct StartInfo {
    cmdline: &'static [u8],
    /// Address of the ACPI root pointer, 0 if the loader does not know it.
    pub root_pointer: u64,
    map: &'static [u8],
    disk: bool,
}

impl StartInfo {
    /// Reads the block; without one the probe still runs, and knows nothing.
    pub fn at(address: u64) -> Self {
        let block = memory(address, 56).filter(|block| word(block, 0) == MAGIC);
        let Some(block) = block else {
            return Self {
                cmdline: b"",
                root_pointer: 0,
                map: &[],
                disk: false,
            };
        };
        // The memory map came with version 1.
        let map = if word(block, 4) >= 1 {
            memory(long(block, 40), word(block, 48) as usize * 24)
        } else {
            None
        };
        Self {
            cmdline: text(long(block, 24)),
            root_pointer: long(block, 32),
            map: map.unwrap_or_default(),
            disk: word(block, 52) == DISK,
        }
    }

    /// How the probe was booted.
    pub fn kind(&self) -> &'static [u8] {
        if self.disk { b"disk" } else { b"pvh" }
    }

    /// The command line.
    pub fn cmdline(&self) -> &'static [u8] {
        self.cmdline
    }

    /// Usable memory: bytes and number of ranges.
    pub fn usable(&self) -> (u64, usize) {
        let ranges = self
            .map
            .chunks_exact(24)
            .filter(|range| word(range, 16) == USABLE);
        ranges.fold((0, 0), |(bytes, count), range| {
            (bytes + long(range, 8), count + 1)
        })
    }
}

/// Text up to its NUL.
fn text(address: u64) -> &'static [u8] {
    let bytes = memory(address, LONGEST_CMDLINE).unwrap_or_default();
    let length = bytes.iter().position(|byte| *byte == 0).unwrap_or(0);
    &bytes[..length]
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}
