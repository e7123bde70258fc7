//! Finding ACPI tables in memory; reading them is `probe::acpi`.

use probe::acpi::{self, HEADER};

use crate::hardware::memory;
use crate::start_info::StartInfo;

/// A whole table at an address.
pub fn table(address: u64) -> Option<&'static [u8]> {
    const LARGEST: u32 = 16 << 20;
    let header = memory(address, HEADER)?;
    let length = u32::from_le_bytes([header[4], header[5], header[6], header[7]]);
    if length > LARGEST {
        return None;
    }
    memory(address, length as usize)
}

/// Every table that the root table lists.
pub fn tables(start: &StartInfo) -> Option<impl Iterator<Item = &'static [u8]>> {
    let root = acpi::root(memory(root_pointer(start)?, 36)?)?;
    let list = table(root.address)?;
    Some(acpi::entries(list, root.entry_bytes).filter_map(table))
}

/// Where the loader says, else where BIOSes put it: the first KiB of the extended BIOS data area, then the ROM area.
fn root_pointer(start: &StartInfo) -> Option<u64> {
    const ROM: u64 = 0xe_0000;
    const ROM_BYTES: usize = 0x2_0000;
    if start.root_pointer != 0 {
        return Some(start.root_pointer);
    }
    let segment = memory(0x40e, 2)?;
    let data_area = u64::from(u16::from_le_bytes([segment[0], segment[1]])) << 4;
    [(data_area, 1024), (ROM, ROM_BYTES)]
        .into_iter()
        .find_map(|(base, length)| {
            let offset = acpi::find_root(memory(base, length)?)?;
            Some(base + offset as u64)
        })
}
