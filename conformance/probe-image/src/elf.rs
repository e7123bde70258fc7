//! As much of ELF as the probe's own build makes: 64-bit, little-endian, linked to fixed addresses.

const LOAD: u64 = 1;
const HEADER_BYTES: u64 = 56;

/// A part of the program in memory.
pub(crate) struct Segment<'a> {
    /// Physical address.
    pub(crate) address: u64,
    /// What the file holds of it.
    pub(crate) bytes: &'a [u8],
    /// Its size in memory.
    pub(crate) memory_size: u64,
}

/// All loadable segments that take memory.
pub(crate) fn segments(file: &[u8]) -> Result<Vec<Segment<'_>>, &'static str> {
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return Err("wrong magic, word size or byte order");
    }
    let truncated = "it is truncated";
    let table = number(file, 32, 8).ok_or(truncated)?;
    let size = number(file, 54, 2).ok_or(truncated)?;
    let count = number(file, 56, 2).ok_or(truncated)?;
    if size < HEADER_BYTES {
        return Err("program headers are too short");
    }
    let mut segments = Vec::new();
    for index in 0..count {
        let at = table.checked_add(index * size).ok_or(truncated)?;
        let field = |offset, width| {
            at.checked_add(offset)
                .and_then(|at| number(file, at, width))
                .ok_or(truncated)
        };
        let (kind, memory_size) = (field(0, 4)?, field(40, 8)?);
        if kind == LOAD && memory_size > 0 {
            let bytes = slice(file, field(8, 8)?, field(32, 8)?).ok_or(truncated)?;
            segments.push(Segment {
                address: field(24, 8)?,
                bytes,
                memory_size,
            });
        }
    }
    Ok(segments)
}

/// The entry point of the header.
pub(crate) fn entry(file: &[u8]) -> Result<u64, &'static str> {
    number(file, 24, 8).ok_or("it is truncated")
}

fn number(file: &[u8], at: u64, width: u64) -> Option<u64> {
    Some(
        slice(file, at, width)?
            .iter()
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte)),
    )
}

fn slice(file: &[u8], at: u64, length: u64) -> Option<&[u8]> {
    let end = at.checked_add(length)?;
    file.get(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
}
