//! A small kernel and boot sector, packed and spoiled.

use proptest::prelude::*;

use super::*;

/// One segment per `(address, file bytes, memory size)`.
fn elf(entry: u64, segments: &[(u64, &[u8], u64)]) -> Vec<u8> {
    let mut file = vec![0; 64 + 56 * segments.len()];
    file[..6].copy_from_slice(b"\x7fELF\x02\x01");
    file[24..32].copy_from_slice(&entry.to_le_bytes());
    file[32] = 64;
    file[54] = 56;
    file[56] = u8::try_from(segments.len()).expect("few");
    for (index, (address, bytes, memory_size)) in segments.iter().enumerate() {
        let at = 64 + 56 * index;
        let offset = file.len() as u64;
        file[at] = 1;
        for (field, value) in [
            (8, offset),
            (24, *address),
            (32, bytes.len() as u64),
            (40, *memory_size),
        ] {
            file[at + field..at + field + 8].copy_from_slice(&value.to_le_bytes());
        }
        file.extend_from_slice(bytes);
    }
    file
}

fn boot_sector() -> Vec<u8> {
    let mut sector = [0x90; SECTOR];
    sector[4..8].copy_from_slice(SIGNATURE);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    elf(0x7c00, &[(0x7c00, &sector, 512)])
}

fn kernel() -> Vec<u8> {
    elf(
        0x10_0020,
        &[(0x10_0000, b"code", 4), (0x10_1000, b"data", 0x9000)],
    )
}

#[test]
fn the_image_is_memory_behind_a_patched_sector() {
    let image = pack(&kernel(), &boot_sector()).expect("an image");
    assert_eq!(image.len(), IMAGE_UNIT);
    // 0xa000 bytes are two pieces of 32 KiB.
    assert_eq!(
        image[PIECES_AT..PIECES_AT + 8],
        [2, 0, 0, 0, 0x20, 0, 0x10, 0]
    );
    assert_eq!(
        (&image[512..516], &image[512 + 0x1000..516 + 0x1000]),
        (b"code".as_slice(), b"data".as_slice())
    );
    assert!(image[516 + 0x1000..].iter().all(|byte| *byte == 0));
}

#[test]
fn names_what_does_not_fit() {
    let high = elf(0x20_0000, &[(0x20_0000, b"x", 1)]);
    assert_eq!(
        pack(&high, &boot_sector()),
        Err(PackError::LoadAddress { start: 0x20_0000 })
    );
    let large = elf(0x10_0000, &[(0x10_0000, b"x", 0x7_0001)]);
    assert_eq!(
        pack(&large, &boot_sector()),
        Err(PackError::TooLarge { bytes: 0x7_0001 })
    );
    assert!(matches!(
        pack(&kernel(), &kernel()),
        Err(PackError::BootSector { .. })
    ));
    assert!(matches!(
        pack(b"text", &boot_sector()),
        Err(PackError::Elf {
            file: "the kernel",
            ..
        })
    ));
    assert!(matches!(
        pack(&kernel(), b""),
        Err(PackError::Elf {
            file: "the boot sector",
            ..
        })
    ));
}

proptest! {
    #[test]
    fn spoiled_files_never_panic(at in 0usize..180, value in any::<u8>(), cut in 0usize..200) {
        let mut kernel = kernel();
        kernel[at] = value;
        let _any = pack(&kernel, &boot_sector());
        let _any = pack(&kernel[..cut.min(kernel.len())], &boot_sector());
    }
}
