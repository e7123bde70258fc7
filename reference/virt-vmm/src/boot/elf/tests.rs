//! A well-formed kernel in both word sizes, each way to spoil it, and random bytes.

use proptest::prelude::*;
use rstest::rstest;

use super::*;

const ENTRY: u64 = 0x10_0010;
const WINDOW: Span = Span {
    start: 0x10_0000,
    size: 0x100_0000,
};

/// A 64-bit kernel: one segment of 32 file bytes (64 in memory) at 1 MiB, and a note.
fn kernel() -> Vec<u8> {
    let mut bytes = vec![0; 64 + 2 * 56];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1]);
    put(&mut bytes, 16, &EXECUTABLE.to_le_bytes());
    put(&mut bytes, 18, &MACHINE_X86_64.to_le_bytes());
    put(&mut bytes, 32, &64u64.to_le_bytes());
    put(&mut bytes, 54, &56u16.to_le_bytes());
    put(&mut bytes, 56, &2u16.to_le_bytes());
    let note = note();
    let (load_at, note_at) = (bytes.len() as u64, bytes.len() as u64 + 32);
    header64(&mut bytes, 64, [LOAD, load_at, 0x10_0000, 32, 64]);
    header64(
        &mut bytes,
        120,
        [NOTE, note_at, 0, note.len() as u64, note.len() as u64],
    );
    bytes.extend([0x90; 32]);
    bytes.extend(note);
    bytes
}

/// The same with 32-bit headers.
fn kernel32() -> Vec<u8> {
    let mut bytes = vec![0; 52 + 2 * 32];
    bytes[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', 1, 1]);
    put(&mut bytes, 16, &EXECUTABLE.to_le_bytes());
    put(&mut bytes, 18, &MACHINE_386.to_le_bytes());
    put(&mut bytes, 28, &52u32.to_le_bytes());
    put(&mut bytes, 42, &32u16.to_le_bytes());
    put(&mut bytes, 44, &2u16.to_le_bytes());
    let note = note();
    let load_at = u32::try_from(bytes.len()).expect("small");
    let note_size = u32::try_from(note.len()).expect("small");
    for (at, value) in [(0, 1u32), (4, load_at), (12, 0x10_0000), (16, 32), (20, 64)] {
        put(&mut bytes, 52 + at, &value.to_le_bytes());
    }
    for (at, value) in [
        (0, 4u32),
        (4, load_at + 32),
        (16, note_size),
        (20, note_size),
    ] {
        put(&mut bytes, 84 + at, &value.to_le_bytes());
    }
    bytes.extend([0x90; 32]);
    bytes.extend(note);
    bytes
}

/// A GNU note with an odd length first, then the Xen note.
fn note() -> Vec<u8> {
    let mut note = Vec::new();
    note.extend([4u32, 3, 1].iter().flat_map(|word| word.to_le_bytes()));
    note.extend(b"GNU\0abc\0");
    note.extend([4u32, 4, 18].iter().flat_map(|word| word.to_le_bytes()));
    note.extend(b"Xen\0");
    note.extend(u32::try_from(ENTRY).expect("small").to_le_bytes());
    note
}

fn header64(
    bytes: &mut [u8],
    at: usize,
    [kind, offset, physical, file_size, memory_size]: [u64; 5],
) {
    put(
        bytes,
        at,
        &u32::try_from(kind).expect("small").to_le_bytes(),
    );
    for (field, value) in [
        (8, offset),
        (24, physical),
        (32, file_size),
        (40, memory_size),
    ] {
        put(bytes, at + field, &value.to_le_bytes());
    }
}

fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    bytes[at..at + value.len()].copy_from_slice(value);
}

fn spoiled(at: usize, value: &[u8]) -> Vec<u8> {
    let mut bytes = kernel();
    put(&mut bytes, at, value);
    bytes
}

fn planned(bytes: &[u8]) -> Result<Plan, KernelError> {
    plan(bytes).and_then(|plan| plan.check(WINDOW).map(|()| plan))
}

#[rstest]
#[case::wide(kernel(), 176)]
#[case::narrow(kernel32(), 116)]
fn reads_both_word_sizes(#[case] bytes: Vec<u8>, #[case] offset: usize) {
    let segment = Segment {
        file: offset..offset + 32,
        target: Span {
            start: 0x10_0000,
            size: 64,
        },
    };
    assert_eq!(
        planned(&bytes).expect("a good kernel"),
        Plan {
            entry: ENTRY,
            segments: vec![segment]
        }
    );
}

#[rstest]
#[case::empty(vec![], "the kernel is of kind Unknown, an ELF file with a PVH note is needed")]
#[case::magic_only(b"\x7fELF".to_vec(), "the kernel file ends before its file header")]
#[case::half_a_header(kernel()[..63].to_vec(), "the kernel file ends before its file header")]
#[case::class(spoiled(4, &[3]), "the kernel is not an x86 ELF program: class is 3")]
#[case::big_endian(spoiled(5, &[2]), "the kernel is not an x86 ELF program: byte order is 2")]
#[case::object(spoiled(16, &[1]), "the kernel is not an x86 ELF program: type is 1")]
#[case::arm(spoiled(18, &183u16.to_le_bytes()), "the kernel is not an x86 ELF program: machine is 183")]
#[case::header_size(spoiled(54, &[8, 0]), "the kernel is not an x86 ELF program: program header size is 8")]
#[case::headers_far_away(spoiled(32, &u64::MAX.to_le_bytes()), "the kernel file ends before its program headers")]
#[case::too_many_headers(spoiled(56, &u16::MAX.to_le_bytes()), "the kernel file ends before its program headers")]
#[case::no_headers(spoiled(56, &[0, 0]), "the kernel has no loadable segment")]
#[case::no_note(spoiled(120, &[0]), "the kernel has no PVH entry note")]
#[case::segment_past_the_end(spoiled(64 + 8, &0x1_0000u64.to_le_bytes()), "the kernel file ends before its segments")]
#[case::segment_wraps(spoiled(64 + 8, &u64::MAX.to_le_bytes()), "the kernel file ends before its segments")]
#[case::shrinks(spoiled(64 + 40, &8u64.to_le_bytes()), "kernel segment 0 is longer in the file than in memory")]
#[case::low(spoiled(64 + 24, &0x1000u64.to_le_bytes()), "kernel bytes 0x1000+0x40 lie outside of the guest's memory 0x100000..0x1100000")]
#[case::high(spoiled(64 + 24, &(u64::MAX - 1).to_le_bytes()), "kernel bytes 0xfffffffffffffffe+0x40 lie outside of the guest's memory 0x100000..0x1100000")]
#[case::huge(spoiled(64 + 40, &u64::MAX.to_le_bytes()), "kernel bytes 0x100000+0xffffffffffffffff lie outside of the guest's memory 0x100000..0x1100000")]
#[case::entry_elsewhere(spoiled(64 + 24, &0x20_0000u64.to_le_bytes()), "the kernel's entry point 0x100010 is in none of its segments")]
fn names_what_is_wrong(#[case] bytes: Vec<u8>, #[case] message: &str) {
    assert_eq!(
        planned(&bytes).expect_err("a bad kernel").to_string(),
        message
    );
}

#[test]
fn overlapping_segments_are_refused() {
    let mut bytes = kernel();
    let load: Vec<u8> = bytes[64..120].to_vec();
    // The note header becomes a copy of the load header, so the check is made on the plan's segments alone.
    put(&mut bytes, 120, &load);
    assert!(matches!(plan(&bytes), Err(KernelError::NoPvhNote)));
    let segment = Segment {
        file: 0..0,
        target: Span {
            start: 0x10_0000,
            size: 64,
        },
    };
    let plan = Plan {
        entry: ENTRY,
        segments: vec![segment.clone(), segment],
    };
    assert!(matches!(
        plan.check(WINDOW),
        Err(KernelError::SegmentsOverlap { start: 0x10_0000 })
    ));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _any = planned(&bytes);
    }

    /// A good kernel with some bytes changed is refused or stays inside the window and the file.
    #[test]
    fn spoiled_kernels_stay_in_bounds(changes in proptest::collection::vec((0usize..260, any::<u8>()), 1..12)) {
        let mut bytes = kernel();
        for (at, value) in changes {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        if let Ok(plan) = planned(&bytes) {
            prop_assert!(plan.segments.iter().all(|segment| WINDOW.contains(segment.target)));
            prop_assert!(plan.segments.iter().all(|segment| segment.file.end <= bytes.len()));
            prop_assert!(plan.segments.iter().all(|segment| segment.file.len() as u64 <= segment.target.size));
        }
    }

    #[test]
    fn random_notes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
        let _any = pvh_entry(&bytes);
    }
}
