//! Where guest memory and the things in it lie. Plain arithmetic, so that the edges can be tested in a table.
//!
//! Memory fills [0, 3 GiB), then goes on at 4 GiB: the gap belongs to the local APIC and future devices.

use crate::memory::MemoryError;

/// Start of the gap that holds no memory.
pub(crate) const HOLE_START: u64 = 3 << 30;
/// End of that gap.
pub(crate) const HOLE_END: u64 = 4 << 30;
/// Highest guest-physical address plus one that any x86 page table can name.
const ADDRESS_LIMIT: u64 = 1 << 52;

/// The PVH start block, its module list and its memory map share the second page range of low memory.
pub(crate) const START_INFO: u64 = 0x6000;
/// The initrd's module entry.
pub(crate) const MODULE_LIST: u64 = 0x6100;
/// The PVH memory map.
pub(crate) const MEMORY_MAP: u64 = 0x7000;
/// The command line, with its NUL at most 2 KiB.
pub(crate) const COMMAND_LINE: u64 = 0x2_0000;
/// End of conventional memory; from here to 1 MiB is reserved.
pub(crate) const LOW_RESERVED: u64 = 0xa_0000;
/// ACPI tables, RSDP first, inside the area that a guest without a boot protocol scans.
pub(crate) const ACPI_TABLES: u64 = 0xe_0000;
/// Kernels are loaded at or above 1 MiB.
pub(crate) const KERNEL_FLOOR: u64 = 0x10_0000;

/// A run of guest-physical addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// First address.
    pub(crate) start: u64,
    /// Number of bytes.
    pub(crate) size: u64,
}

impl Span {
    /// Address after the last one. Spans are made so that this cannot wrap.
    pub(crate) fn end(self) -> u64 {
        self.start.saturating_add(self.size)
    }

    /// Whether all of `other` lies inside.
    pub(crate) fn contains(self, other: Span) -> bool {
        other.start >= self.start
            && other
                .start
                .checked_add(other.size)
                .is_some_and(|end| end <= self.end())
    }

    /// Whether any address belongs to both.
    pub(crate) fn overlaps(self, other: Span) -> bool {
        self.size > 0 && other.size > 0 && self.start < other.end() && other.start < self.end()
    }
}

/// One entry of the memory map that the guest is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MapEntry {
    /// The addresses.
    pub(crate) span: Span,
    /// Whether the guest may use them.
    pub(crate) usable: bool,
}

/// Splits a memory size around the gap.
pub(crate) fn spans(bytes: u64) -> Result<Vec<Span>, MemoryError> {
    let low = bytes.min(HOLE_START);
    let high = bytes - low;
    if HOLE_END
        .checked_add(high)
        .is_none_or(|end| end > ADDRESS_LIMIT)
    {
        return Err(MemoryError::TooLarge { bytes });
    }
    let mut spans = vec![Span {
        start: 0,
        size: low,
    }];
    if high > 0 {
        spans.push(Span {
            start: HOLE_END,
            size: high,
        });
    }
    Ok(spans)
}

/// The memory map for the spans: everything usable but the old BIOS area, which holds the ACPI tables.
pub(crate) fn memory_map(spans: &[Span]) -> Vec<MapEntry> {
    let mut map = Vec::new();
    for span in spans {
        if span.start == 0 {
            let reserved = Span {
                start: LOW_RESERVED,
                size: KERNEL_FLOOR - LOW_RESERVED,
            };
            map.push(MapEntry {
                span: Span {
                    start: 0,
                    size: LOW_RESERVED,
                },
                usable: true,
            });
            map.push(MapEntry {
                span: reserved,
                usable: false,
            });
            let above = Span {
                start: KERNEL_FLOOR,
                size: span.size.saturating_sub(KERNEL_FLOOR),
            };
            map.push(MapEntry {
                span: above,
                usable: true,
            });
        } else {
            map.push(MapEntry {
                span: *span,
                usable: true,
            });
        }
    }
    map
}

/// Where kernels and initrds may lie: low memory from 1 MiB up.
pub(crate) fn kernel_window(spans: &[Span]) -> Span {
    let low_end = spans.first().map_or(0, |span| span.end());
    Span {
        start: KERNEL_FLOOR,
        size: low_end.saturating_sub(KERNEL_FLOOR),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const GIB: u64 = 1 << 30;

    #[rstest]
    #[case::small(2 << 20, &[(0, 2 << 20)])]
    #[case::just_below(3 * GIB - 4096, &[(0, 3 * GIB - 4096)])]
    #[case::to_the_hole(3 * GIB, &[(0, 3 * GIB)])]
    #[case::one_page_over(3 * GIB + 4096, &[(0, 3 * GIB), (4 * GIB, 4096)])]
    #[case::eight(8 * GIB, &[(0, 3 * GIB), (4 * GIB, 5 * GIB)])]
    fn splits_at_the_hole(#[case] bytes: u64, #[case] expected: &[(u64, u64)]) {
        let spans = spans(bytes).expect("fits");
        let found: Vec<(u64, u64)> = spans.iter().map(|span| (span.start, span.size)).collect();
        assert_eq!(found, expected);
    }

    #[rstest]
    #[case(u64::MAX)]
    #[case(1 << 52)]
    fn refuses_what_no_address_reaches(#[case] bytes: u64) {
        assert!(matches!(spans(bytes), Err(MemoryError::TooLarge { .. })));
    }

    #[test]
    fn the_largest_size_ends_at_the_limit() {
        let largest = spans(ADDRESS_LIMIT - (HOLE_END - HOLE_START)).expect("fits exactly");
        assert_eq!(largest.last().map(|span| span.end()), Some(ADDRESS_LIMIT));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_and_none_lies_in_the_hole(pages in 512u64..(1 << 38)) {
            let bytes = pages * 4096;
            let spans = spans(bytes).expect("fits");
            prop_assert_eq!(spans.iter().map(|span| span.size).sum::<u64>(), bytes);
            let hole = Span { start: HOLE_START, size: HOLE_END - HOLE_START };
            prop_assert!(spans.iter().all(|span| !span.overlaps(hole)));
        }

        #[test]
        fn the_map_is_sorted_and_covers_memory(pages in 512u64..(1 << 38)) {
            let spans = spans(pages * 4096).expect("fits");
            let map = memory_map(&spans);
            prop_assert!(map.windows(2).all(|pair| pair[0].span.end() <= pair[1].span.start));
            prop_assert_eq!(map.iter().map(|entry| entry.span.size).sum::<u64>(), pages * 4096);
        }

        #[test]
        fn containment_never_wraps(start in any::<u64>(), size in any::<u64>()) {
            let window = Span { start: KERNEL_FLOOR, size: GIB };
            let inside = start >= KERNEL_FLOOR && u128::from(start) + u128::from(size) <= u128::from(KERNEL_FLOOR + GIB);
            prop_assert_eq!(window.contains(Span { start, size }), inside);
        }
    }
}
