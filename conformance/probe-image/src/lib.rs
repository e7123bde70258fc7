//! The probe's disk form: boot sector, then the kernel as it lies in memory from 1 MiB up.
//!
//! The image depends on nothing but the two files, so that it is byte-identical whenever they are. The boot sector
//! holds, after the signature `PRBD`, the number of 32 KiB pieces to load and the 32-bit entry point; this crate fills
//! them in.

mod elf;

use thiserror::Error;

/// What the BIOS reads at once.
const SECTOR: usize = 512;
/// What the boot sector reads at once: 64 sectors.
const PIECE: usize = 64 * SECTOR;
/// The boot sector stages the payload in low memory, from 64 KiB to below 512 KiB.
const PAYLOAD_MAX: usize = 0x8_0000 - 0x1_0000;
/// Where the boot sector copies the payload.
const LOAD_ADDRESS: u64 = 0x10_0000;
/// Disks come in mebibytes.
const IMAGE_UNIT: usize = 1 << 20;
const SIGNATURE: &[u8; 4] = b"PRBD";
const SIGNATURE_AT: usize = 4;
const PIECES_AT: usize = 8;
const ENTRY_AT: usize = 12;

/// The two files do not make an image.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PackError {
    /// A file is not the kind of ELF file that the probe's build makes.
    #[error("{file} is not a 64-bit ELF program: {problem}")]
    Elf {
        /// Which of the two.
        file: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The boot sector is no boot sector of the probe.
    #[error("the boot sector {problem}")]
    BootSector {
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The kernel is linked elsewhere.
    #[error("the kernel starts at {start:#x}, the boot sector loads it to {LOAD_ADDRESS:#x}")]
    LoadAddress {
        /// Lowest address of its segments.
        start: u64,
    },
    /// The kernel does not fit where the boot sector stages it.
    #[error("the kernel takes {bytes} bytes in memory, at most {PAYLOAD_MAX} can be loaded")]
    TooLarge {
        /// Its size in memory.
        bytes: u64,
    },
}

/// Makes the image from the `probe` and `boot-sector` files of the probe's build.
///
/// # Errors
/// One of the files is not what its name says, or they do not fit together.
pub fn pack(probe: &[u8], boot_sector: &[u8]) -> Result<Vec<u8>, PackError> {
    let (payload, entry) = flatten(probe)?;
    let pieces = payload.len().div_ceil(PIECE);
    let size = (SECTOR + pieces * PIECE).next_multiple_of(IMAGE_UNIT);
    let mut image = vec![0; size];
    image[..SECTOR].copy_from_slice(&sector(boot_sector)?);
    // Both fit: the payload is bounded far below 4 GiB.
    put(
        &mut image,
        PIECES_AT,
        u32::try_from(pieces).unwrap_or(u32::MAX),
    );
    put(&mut image, ENTRY_AT, entry);
    image[SECTOR..SECTOR + payload.len()].copy_from_slice(&payload);
    Ok(image)
}

/// The kernel's memory from its load address on, zeroes included, and its entry point.
fn flatten(probe: &[u8]) -> Result<(Vec<u8>, u32), PackError> {
    let bad = |problem| PackError::Elf {
        file: "the kernel",
        problem,
    };
    let segments = elf::segments(probe).map_err(bad)?;
    let start = segments
        .iter()
        .map(|segment| segment.address)
        .min()
        .ok_or_else(|| bad("nothing to load"))?;
    if start != LOAD_ADDRESS {
        return Err(PackError::LoadAddress { start });
    }
    let end = segments
        .iter()
        .map(|segment| segment.address.saturating_add(segment.memory_size))
        .max()
        .unwrap_or(start);
    let bytes = end - start;
    let length = usize::try_from(bytes)
        .ok()
        .filter(|length| *length <= PAYLOAD_MAX);
    let mut payload = vec![0; length.ok_or(PackError::TooLarge { bytes })?];
    for segment in &segments {
        let at =
            usize::try_from(segment.address - start).map_err(|_| bad("segment out of range"))?;
        let place = payload
            .get_mut(at..at + segment.bytes.len())
            .ok_or_else(|| bad("segment longer than its memory"))?;
        place.copy_from_slice(segment.bytes);
    }
    let entry = elf::entry(probe).map_err(bad)?;
    Ok((
        payload,
        u32::try_from(entry).map_err(|_| bad("entry point above 4 GiB"))?,
    ))
}

fn sector(file: &[u8]) -> Result<[u8; SECTOR], PackError> {
    let bad = |problem| PackError::BootSector { problem };
    let segments = elf::segments(file).map_err(|problem| PackError::Elf {
        file: "the boot sector",
        problem,
    })?;
    let bytes = segments
        .first()
        .map(|segment| segment.bytes)
        .unwrap_or_default();
    let sector: [u8; SECTOR] = bytes
        .try_into()
        .map_err(|_| bad("is not exactly one sector"))?;
    if sector[SIGNATURE_AT..PIECES_AT] != *SIGNATURE {
        return Err(bad("lacks the signature of the probe"));
    }
    if sector[SECTOR - 2..] != [0x55, 0xaa] {
        return Err(bad("lacks the BIOS's boot mark"));
    }
    Ok(sector)
}

fn put(image: &mut [u8], at: usize, value: u32) {
    image[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests;
