//! The ACPI tables: enough for a guest to find its CPU, switch itself off, be asked to, and reset.
//!
//! RSDP -> XSDT -> { FADT -> DSDT, MADT }. There is no I/O APIC yet, so none is announced, and the power button is a
//! fixed event that a guest has to poll.

use crate::devices::{cf9, pm};

/// The tables as one block of bytes, RSDP first, for the given guest address.
pub(crate) fn tables(base: u64, vcpus: u8) -> Vec<u8> {
    let mut block = Block {
        base,
        bytes: vec![0; RSDP_BYTES],
    };
    let dsdt = block.append(&table(b"DSDT", 2, &dsdt_body()));
    let fadt = block.append(&table(b"FACP", 6, &fadt_body(dsdt)));
    let madt = block.append(&table(b"APIC", 5, &madt_body(vcpus)));
    let pointers: Vec<u8> = [fadt, madt]
        .iter()
        .flat_map(|address| address.to_le_bytes())
        .collect();
    let xsdt = block.append(&table(b"XSDT", 1, &pointers));
    block.bytes[..RSDP_BYTES].copy_from_slice(&rsdp(xsdt));
    block.bytes
}

const RSDP_BYTES: usize = 36;
const HEADER_BYTES: usize = 36;
const OEM_ID: &[u8; 6] = b"VIRTMK";
/// The interrupt that the FADT has to name; without an I/O APIC it is never raised.
const SCI: u16 = 9;
const LOCAL_APIC: u32 = 0xfee0_0000;

struct Block {
    base: u64,
    bytes: Vec<u8>,
}

impl Block {
    /// Adds a table on a 16-byte boundary and returns its guest address.
    fn append(&mut self, table: &[u8]) -> u64 {
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        let address = self.base + self.bytes.len() as u64;
        self.bytes.extend_from_slice(table);
        address
    }
}

/// The byte that makes the sum of all bytes zero.
fn checksum(bytes: &[u8]) -> u8 {
    bytes
        .iter()
        .fold(0u8, |sum, byte| sum.wrapping_add(*byte))
        .wrapping_neg()
}

fn rsdp(xsdt: u64) -> [u8; RSDP_BYTES] {
    let mut rsdp = [0; RSDP_BYTES];
    rsdp[..8].copy_from_slice(b"RSD PTR ");
    rsdp[9..15].copy_from_slice(OEM_ID);
    rsdp[15] = 2;
    rsdp[20..24].copy_from_slice(&36u32.to_le_bytes());
    rsdp[24..32].copy_from_slice(&xsdt.to_le_bytes());
    rsdp[8] = checksum(&rsdp[..20]);
    rsdp[32] = checksum(&rsdp);
    rsdp
}

/// A header with its checksum, then the body.
fn table(signature: &[u8; 4], revision: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX);
    let mut table = Vec::with_capacity(HEADER_BYTES + body.len());
    table.extend_from_slice(signature);
    table.extend_from_slice(&length.to_le_bytes());
    table.extend_from_slice(&[revision, 0]);
    table.extend_from_slice(OEM_ID);
    table.extend_from_slice(b"VIRTMARK");
    table.extend_from_slice(&1u32.to_le_bytes());
    table.extend_from_slice(b"VMRK");
    table.extend_from_slice(&1u32.to_le_bytes());
    table.extend_from_slice(body);
    table[9] = checksum(&table);
    table
}

/// AML of `Name (_S5, Package () { 5, 5, 0, 0 })`.
fn dsdt_body() -> Vec<u8> {
    let sleep = pm::SLEEP_TYPE_OFF;
    vec![
        0x08, b'_', b'S', b'5', b'_', 0x12, 0x08, 0x04, 0x0a, sleep, 0x0a, sleep, 0x00, 0x00,
    ]
}

fn fadt_body(dsdt: u64) -> Vec<u8> {
    /// Bytes of a revision 6 table after its header.
    const BODY: usize = 276 - HEADER_BYTES;
    const WBINVD: u32 = 1;
    const NO_SLEEP_BUTTON: u32 = 1 << 5;
    const RESET_REGISTER: u32 = 1 << 10;
    // Legacy devices (the serial port); no VGA; no CMOS clock.
    const BOOT_ARCH: u16 = 1 | 1 << 2 | 1 << 5;

    let mut body = vec![0; BODY];
    // Offsets are those of the ACPI specification, which count from the start of the table.
    let mut put = |offset: usize, bytes: &[u8]| {
        let at = offset - HEADER_BYTES;
        body[at..at + bytes.len()].copy_from_slice(bytes);
    };
    put(40, &u32::try_from(dsdt).unwrap_or_default().to_le_bytes());
    put(46, &SCI.to_le_bytes());
    put(56, &u32::from(pm::EVENT_PORT).to_le_bytes());
    put(64, &u32::from(pm::CONTROL_PORT).to_le_bytes());
    put(88, &[pm::EVENT_BYTES, pm::CONTROL_BYTES]);
    put(109, &BOOT_ARCH.to_le_bytes());
    put(
        112,
        &(WBINVD | NO_SLEEP_BUTTON | RESET_REGISTER).to_le_bytes(),
    );
    put(116, &io_address(cf9::PORT, 8));
    put(128, &[cf9::RESET_VALUE]);
    put(140, &dsdt.to_le_bytes());
    put(148, &io_address(pm::EVENT_PORT, pm::EVENT_BYTES * 8));
    put(172, &io_address(pm::CONTROL_PORT, pm::CONTROL_BYTES * 8));
    body
}

/// A generic address structure that names a port.
fn io_address(port: u16, bits: u8) -> [u8; 12] {
    let mut address = [0; 12];
    address[0] = 1;
    address[1] = bits;
    address[4..6].copy_from_slice(&port.to_le_bytes());
    address
}

fn madt_body(vcpus: u8) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&LOCAL_APIC.to_le_bytes());
    body.extend_from_slice(&0u32.to_le_bytes());
    for id in 0..vcpus {
        body.extend_from_slice(&[0, 8, id, id, 1, 0, 0, 0]);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u64 = 0xe_0000;

    fn at(block: &[u8], address: u64) -> &[u8] {
        let table = &block[usize::try_from(address - BASE).expect("small")..];
        let length = u32::from_le_bytes(table[4..8].try_into().expect("four bytes"));
        &table[..length as usize]
    }

    fn address(bytes: &[u8]) -> u64 {
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }

    fn sum(bytes: &[u8]) -> u8 {
        bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte))
    }

    #[test]
    fn every_table_is_reachable_and_sums_to_zero() {
        let block = tables(BASE, 2);
        assert_eq!(
            (&block[..8], sum(&block[..20]), sum(&block[..36])),
            (b"RSD PTR ".as_slice(), 0, 0)
        );
        let xsdt = at(&block, address(&block[24..32]));
        let fadt = at(&block, address(&xsdt[36..44]));
        let madt = at(&block, address(&xsdt[44..52]));
        let dsdt = at(&block, address(&fadt[140..148]));
        for (table, signature) in [
            (xsdt, b"XSDT"),
            (fadt, b"FACP"),
            (madt, b"APIC"),
            (dsdt, b"DSDT"),
        ] {
            assert_eq!((&table[..4], sum(table)), (signature.as_slice(), 0));
        }
        assert_eq!((fadt.len(), madt.len()), (276, 36 + 8 + 2 * 8));
        assert!(dsdt.windows(4).any(|window| window == b"_S5_"));
    }

    #[test]
    fn the_fadt_names_the_ports_that_the_devices_answer() {
        let body = fadt_body(BASE);
        assert_eq!(
            body[56 - 36..60 - 36],
            u32::from(pm::EVENT_PORT).to_le_bytes()
        );
        assert_eq!(
            body[64 - 36..68 - 36],
            u32::from(pm::CONTROL_PORT).to_le_bytes()
        );
        assert_eq!(body[128 - 36], cf9::RESET_VALUE);
    }
}
