//! Reading ACPI tables: where the power management registers are, and which sleep type switches the machine off.

/// Bytes of the fixed part of every table.
pub const HEADER: usize = 36;

/// Where to find the tables, out of a root pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// Address of the XSDT or RSDT.
    pub address: u64,
    /// Bytes of each of its entries, 8 or 4.
    pub entry_bytes: usize,
}

/// Reads a root pointer; `None` if it is none or its checksum is wrong.
pub fn root(bytes: &[u8]) -> Option<Root> {
    let first = bytes.get(..20)?;
    if !first.starts_with(b"RSD PTR ") || sum(first) != 0 {
        return None;
    }
    let revision = first[15];
    let wide = if revision >= 2 {
        number(bytes, 24, 8)?
    } else {
        0
    };
    match wide {
        0 => Some(Root {
            address: number(first, 16, 4)?,
            entry_bytes: 4,
        }),
        address => Some(Root {
            address,
            entry_bytes: 8,
        }),
    }
}

/// The offset of a root pointer in a block of firmware memory; they lie on 16-byte boundaries.
pub fn find_root(firmware: &[u8]) -> Option<usize> {
    (0..firmware.len())
        .step_by(16)
        .find(|offset| root(&firmware[*offset..]).is_some())
}

/// The addresses that a root table lists.
pub fn entries(table: &[u8], entry_bytes: usize) -> impl Iterator<Item = u64> + '_ {
    let list = table.get(HEADER..).unwrap_or_default();
    list.chunks_exact(entry_bytes)
        .filter_map(move |entry| number(entry, 0, entry_bytes))
}

/// A register of the sleep control kind, in memory or at a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// At a memory address.
    Memory(u64),
    /// At a port.
    Port(u16),
}

/// What the fixed description table says about power management.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fixed {
    /// Address of the DSDT.
    pub dsdt: u64,
    /// Port and value that switch to ACPI mode, if the machine is not always in it.
    pub enable: Option<(u16, u8)>,
    /// Port of the PM1a status register and of its enable register.
    pub event: Option<(u16, u16)>,
    /// Ports of the PM1a and PM1b control registers.
    pub control: [Option<u16>; 2],
    /// Sleep control of a machine without these registers.
    pub sleep: Option<Register>,
    /// Whether the power button is a fixed event.
    pub button: bool,
}

/// Reads a fixed description table.
pub fn fixed(table: &[u8]) -> Option<Fixed> {
    const BUTTON_IS_A_DEVICE: u64 = 1 << 4;
    const HARDWARE_REDUCED: u64 = 1 << 20;
    let flags = number(table, 112, 4)?;
    let port = |offset| {
        number(table, offset, 4)
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port != 0)
    };
    let reduced = flags & HARDWARE_REDUCED != 0;
    let half = u16::try_from(number(table, 88, 1)? / 2).ok()?;
    let event = port(56)
        .filter(|_| !reduced)
        .map(|status| (status, status + half));
    let enable = port(48)
        .zip(number(table, 52, 1))
        .map(|(port, value)| (port, value.to_le_bytes()[0]));
    let wide = number(table, 140, 8).filter(|address| *address != 0);
    Some(Fixed {
        dsdt: wide.or_else(|| number(table, 40, 4))?,
        enable: enable.filter(|(_, value)| !reduced && *value != 0),
        event,
        control: if reduced {
            [None, None]
        } else {
            [port(64), port(68)]
        },
        sleep: if reduced {
            register(table.get(244..256)?)
        } else {
            None
        },
        button: event.is_some() && flags & BUTTON_IS_A_DEVICE == 0,
    })
}

/// Reads a generic address.
fn register(bytes: &[u8]) -> Option<Register> {
    let address = number(bytes, 4, 8).filter(|address| *address != 0)?;
    match bytes.first()? {
        0 => Some(Register::Memory(address)),
        1 => u16::try_from(address).ok().map(Register::Port),
        _ => None,
    }
}

/// The sleep types of S5 for the two control registers, out of a definition block.
pub fn sleep_types(aml: &[u8]) -> Option<[u8; 2]> {
    const NAME: u8 = 0x08;
    const PACKAGE: u8 = 0x12;
    // The name first: it is rare, and a slow machine has thousands of bytes to look at.
    let mut names = aml
        .windows(4)
        .enumerate()
        .filter(|(_, name)| *name == b"_S5_");
    let at = names.find_map(|(at, _)| {
        let before = aml.get(..at)?;
        let declared = before.ends_with(&[NAME]) || before.ends_with(&[NAME, b'\\']);
        (declared && aml.get(at + 4) == Some(&PACKAGE)).then_some(at + 5)
    })?;
    // The two high bits of the length's first byte count its further bytes; then comes the number of elements.
    let elements = aml.get(at + 1 + usize::from(aml.get(at)? >> 6) + 1..)?;
    let (first, rest) = small_integer(elements)?;
    let second = small_integer(rest).map_or(first, |(second, _)| second);
    Some([first, second])
}

/// An AML integer that fits a byte, and what follows it.
fn small_integer(aml: &[u8]) -> Option<(u8, &[u8])> {
    match aml {
        [0x00, rest @ ..] => Some((0, rest)),
        [0x01, rest @ ..] => Some((1, rest)),
        [0x0a, value, rest @ ..] => Some((*value, rest)),
        [0x0b, value, 0, rest @ ..] => Some((*value, rest)),
        [0x0c, value, 0, 0, 0, rest @ ..] => Some((*value, rest)),
        _ => None,
    }
}

fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

fn number(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let field = bytes.get(at..at.checked_add(width)?)?;
    Some(
        field
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_pointer(revision: u8, rsdt: u32, xsdt: u64) -> Vec<u8> {
        let mut bytes = vec![0; 36];
        bytes[..8].copy_from_slice(b"RSD PTR ");
        bytes[15] = revision;
        bytes[16..20].copy_from_slice(&rsdt.to_le_bytes());
        bytes[24..32].copy_from_slice(&xsdt.to_le_bytes());
        bytes[8] = 0u8.wrapping_sub(sum(&bytes[..20]));
        bytes
    }

    #[test]
    fn the_wide_root_table_is_preferred() {
        assert_eq!(
            root(&root_pointer(0, 0x1000, 0)),
            Some(Root {
                address: 0x1000,
                entry_bytes: 4
            })
        );
        assert_eq!(
            root(&root_pointer(2, 0x1000, 0x2000)),
            Some(Root {
                address: 0x2000,
                entry_bytes: 8
            })
        );
        assert_eq!(
            root(&root_pointer(2, 0x1000, 0)),
            Some(Root {
                address: 0x1000,
                entry_bytes: 4
            })
        );
    }

    #[test]
    fn a_wrong_checksum_is_no_root() {
        let mut bytes = root_pointer(0, 0x1000, 0);
        bytes[16] ^= 1;
        assert_eq!(root(&bytes), None);
        let mut firmware = vec![0; 64];
        firmware.extend(&bytes);
        firmware.extend([0; 12]);
        assert_eq!(find_root(&firmware), None);
        firmware.extend(root_pointer(0, 0x1000, 0));
        assert_eq!(find_root(&firmware), Some(112));
    }

    #[test]
    fn sleep_types_of_the_usual_encodings() {
        let package = |elements: &[u8]| {
            [
                &[0x10, 0x08],
                b"_S5_".as_slice(),
                &[0x12, 0x06, 0x04],
                elements,
            ]
            .concat()
        };
        assert_eq!(sleep_types(&package(&[0, 0, 0, 0])), Some([0, 0]));
        assert_eq!(
            sleep_types(&package(&[0x0a, 5, 0x0a, 6, 0, 0])),
            Some([5, 6])
        );
        assert_eq!(sleep_types(&package(&[1, 0, 0, 0])), Some([1, 0]));
        let rooted = [
            &[0x08, b'\\'],
            b"_S5_".as_slice(),
            &[0x12, 0x46, 0x00, 0x04, 0x0a, 7, 0x0a, 7],
        ]
        .concat();
        assert_eq!(sleep_types(&rooted), Some([7, 7]));
        assert_eq!(sleep_types(b"_S5_ is only mentioned"), None);
        assert_eq!(sleep_types(&[0x08, b'_', b'S', b'5', b'_', 0x12]), None);
    }

    fn table(flags: u32) -> Vec<u8> {
        let mut table = vec![0; 276];
        table[40..44].copy_from_slice(&0x9000u32.to_le_bytes());
        table[48..52].copy_from_slice(&0xb2u32.to_le_bytes());
        table[52] = 0xf1;
        table[56..60].copy_from_slice(&0x600u32.to_le_bytes());
        table[64..68].copy_from_slice(&0x604u32.to_le_bytes());
        table[88] = 4;
        table[112..116].copy_from_slice(&flags.to_le_bytes());
        table[244..248].copy_from_slice(&[0, 8, 0, 1]);
        table[248..256].copy_from_slice(&0xfea0_0000u64.to_le_bytes());
        table
    }

    #[test]
    fn registers_of_a_full_machine() {
        let expected = Fixed {
            dsdt: 0x9000,
            enable: Some((0xb2, 0xf1)),
            event: Some((0x600, 0x602)),
            control: [Some(0x604), None],
            sleep: None,
            button: true,
        };
        assert_eq!(fixed(&table(0)), Some(expected));
        assert_eq!(fixed(&table(1 << 4)).map(|fixed| fixed.button), Some(false));
        assert_eq!(fixed(&table(0)[..116]), Some(expected));
    }

    #[test]
    fn registers_of_a_reduced_machine() {
        let reduced = fixed(&table(1 << 20)).expect("a table");
        assert_eq!(
            (reduced.event, reduced.control, reduced.button),
            (None, [None, None], false)
        );
        assert_eq!(reduced.sleep, Some(Register::Memory(0xfea0_0000)));
        assert_eq!(fixed(&table(0)[..100]), None);
    }
}
