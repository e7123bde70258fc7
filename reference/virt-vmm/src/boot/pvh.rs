//! The PVH start block: how a guest learns its command line, memory, initrd and ACPI tables.

use crate::memory::layout::{
    ACPI_TABLES, COMMAND_LINE, MEMORY_MAP, MODULE_LIST, MapEntry, START_INFO, Span,
};

const MAGIC: u32 = 0x336e_c578;
const VERSION: u32 = 1;
const USABLE: u32 = 1;
const RESERVED: u32 = 2;

/// The blocks to write and their guest addresses.
pub(crate) fn blocks(map: &[MapEntry], initrd: Option<Span>) -> Vec<(u64, Vec<u8>)> {
    let mut blocks = vec![
        (START_INFO, start_info(map.len(), initrd.is_some())),
        (MEMORY_MAP, memory_map(map)),
    ];
    if let Some(span) = initrd {
        let module = [span.start, span.size, 0, 0];
        blocks.push((
            MODULE_LIST,
            module.iter().flat_map(|word| word.to_le_bytes()).collect(),
        ));
    }
    blocks
}

fn start_info(map_entries: usize, initrd: bool) -> Vec<u8> {
    let (modules, list) = if initrd { (1u32, MODULE_LIST) } else { (0, 0) };
    let mut block = Vec::new();
    block.extend(
        [MAGIC, VERSION, 0, modules]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    block.extend(
        [list, COMMAND_LINE, ACPI_TABLES, MEMORY_MAP]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    block.extend(u32::try_from(map_entries).unwrap_or_default().to_le_bytes());
    block.extend(0u32.to_le_bytes());
    block
}

fn memory_map(map: &[MapEntry]) -> Vec<u8> {
    let mut block = Vec::new();
    for entry in map {
        block.extend(entry.span.start.to_le_bytes());
        block.extend(entry.span.size.to_le_bytes());
        block.extend(if entry.usable { USABLE } else { RESERVED }.to_le_bytes());
        block.extend(0u32.to_le_bytes());
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::layout;

    #[test]
    fn the_start_block_has_the_size_and_magic_of_the_specification() {
        let block = start_info(3, false);
        assert_eq!(block.len(), 56);
        assert_eq!(block[..4], MAGIC.to_le_bytes());
        assert_eq!(block[40..44], [0x00, 0x70, 0, 0]);
    }

    #[test]
    fn an_initrd_is_the_first_module() {
        let spans = layout::spans(64 << 20).expect("fits");
        let initrd = Span {
            start: 0x3f0_0000,
            size: 77,
        };
        let blocks = blocks(&layout::memory_map(&spans), Some(initrd));
        assert_eq!(blocks.len(), 3);
        assert_eq!(blocks[0].1[12..24], [1, 0, 0, 0, 0, 0x61, 0, 0, 0, 0, 0, 0]);
        assert_eq!(
            blocks[2].1[..16],
            [0, 0, 0xf0, 3, 0, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0]
        );
    }
}
