//! Reading an ELF kernel: which bytes go where, and where a PVH boot enters. Pure, for both word sizes; every number in
//! the file is taken as hostile.

use std::ops::Range;

use crate::boot::kernel::{KernelError, KernelKind};
use crate::memory::layout::Span;

/// What to do with a kernel file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Physical address of the 32-bit PVH entry point.
    pub(crate) entry: u64,
    /// What to copy; memory beyond the file's bytes stays zero.
    pub(crate) segments: Vec<Segment>,
}

/// One loadable segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its bytes in the file.
    pub(crate) file: Range<usize>,
    /// Its place in guest memory.
    pub(crate) target: Span,
}

impl Plan {
    /// Whether the plan can be carried out in the given memory.
    pub(crate) fn check(&self, window: Span) -> Result<(), KernelError> {
        for (index, segment) in self.segments.iter().enumerate() {
            let target = segment.target;
            if !window.contains(target) {
                let (low, high) = (window.start, window.end());
                return Err(KernelError::OutsideMemory {
                    start: target.start,
                    size: target.size,
                    low,
                    high,
                });
            }
            if self.segments[..index]
                .iter()
                .any(|earlier| earlier.target.overlaps(target))
            {
                return Err(KernelError::SegmentsOverlap {
                    start: target.start,
                });
            }
        }
        let entry = Span {
            start: self.entry,
            size: 1,
        };
        if self
            .segments
            .iter()
            .any(|segment| segment.target.contains(entry))
        {
            Ok(())
        } else {
            Err(KernelError::EntryOutside { entry: self.entry })
        }
    }

    /// Address after the last loaded byte.
    pub(crate) fn end(&self) -> u64 {
        self.segments
            .iter()
            .map(|segment| segment.target.end())
            .max()
            .unwrap_or_default()
    }
}

const EXECUTABLE: u16 = 2;
const SHARED: u16 = 3;
const MACHINE_386: u16 = 3;
const MACHINE_X86_64: u16 = 62;
const LITTLE_ENDIAN: u8 = 1;
const LOAD: u64 = 1;
const NOTE: u64 = 4;
/// `XEN_ELFNOTE_PHYS32_ENTRY`.
const PHYS32_ENTRY: u64 = 18;

/// Reads the headers.
pub(crate) fn plan(bytes: &[u8]) -> Result<Plan, KernelError> {
    let headers = headers(bytes)?;
    let mut segments = Vec::new();
    let mut entry = None;
    for (index, header) in headers.iter().enumerate() {
        match header.kind {
            LOAD if header.memory_size > 0 => segments.push(header.segment(index, bytes.len())?),
            NOTE if entry.is_none() => entry = header.bytes(bytes).and_then(pvh_entry),
            _ => {}
        }
    }
    if segments.is_empty() {
        return Err(KernelError::NothingToLoad);
    }
    Ok(Plan {
        entry: entry.ok_or(KernelError::NoPvhNote)?,
        segments,
    })
}

/// A program header, widened to 64 bits.
struct ProgramHeader {
    kind: u64,
    offset: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
}

impl ProgramHeader {
    fn segment(&self, index: usize, file_length: usize) -> Result<Segment, KernelError> {
        if self.file_size > self.memory_size {
            return Err(KernelError::SegmentShrinks { index });
        }
        let file = range(self.offset, self.file_size)
            .filter(|range| range.end <= file_length)
            .ok_or(KernelError::Truncated { what: "segments" })?;
        Ok(Segment {
            file,
            target: Span {
                start: self.physical,
                size: self.memory_size,
            },
        })
    }

    fn bytes<'a>(&self, file: &'a [u8]) -> Option<&'a [u8]> {
        file.get(range(self.offset, self.file_size)?)
    }
}

/// The file header says where the program headers are and how wide.
fn headers(bytes: &[u8]) -> Result<Vec<ProgramHeader>, KernelError> {
    let kind = KernelKind::of(bytes);
    if kind != KernelKind::Elf {
        return Err(KernelError::Kind { kind });
    }
    let truncated = KernelError::Truncated {
        what: "file header",
    };
    let class = *bytes.get(4).ok_or(KernelError::Truncated {
        what: "file header",
    })?;
    let wide = match class {
        1 => false,
        2 => true,
        other => {
            return Err(KernelError::Foreign {
                field: "class",
                value: u16::from(other),
            });
        }
    };
    let header = Fields(bytes.get(..if wide { 64 } else { 52 }).ok_or(truncated)?);
    if header.number(5, 1) != u64::from(LITTLE_ENDIAN) {
        return Err(KernelError::Foreign {
            field: "byte order",
            value: header.half(5) & 0xff,
        });
    }
    if !matches!(header.half(16), EXECUTABLE | SHARED) {
        return Err(KernelError::Foreign {
            field: "type",
            value: header.half(16),
        });
    }
    if !matches!(header.half(18), MACHINE_386 | MACHINE_X86_64) {
        return Err(KernelError::Foreign {
            field: "machine",
            value: header.half(18),
        });
    }
    let (table, size_at, least) = if wide {
        (header.number(32, 8), 54, 56)
    } else {
        (header.number(28, 4), 42, 32)
    };
    let (size, count) = (header.half(size_at), header.half(size_at + 2));
    if size < least {
        return Err(KernelError::Foreign {
            field: "program header size",
            value: size,
        });
    }
    let missing = || KernelError::Truncated {
        what: "program headers",
    };
    (0..u64::from(count))
        .map(|index| {
            let start = table
                .checked_add(index * u64::from(size))
                .ok_or_else(missing)?;
            let at = range(start, u64::from(least)).ok_or_else(missing)?;
            Ok(program_header(
                &Fields(bytes.get(at).ok_or_else(missing)?),
                wide,
            ))
        })
        .collect()
}

fn program_header(fields: &Fields<'_>, wide: bool) -> ProgramHeader {
    let [offset, physical, file_size, memory_size] = if wide {
        [8, 24, 32, 40].map(|at| fields.number(at, 8))
    } else {
        [4, 12, 16, 20].map(|at| fields.number(at, 4))
    };
    ProgramHeader {
        kind: fields.number(0, 4),
        offset,
        physical,
        file_size,
        memory_size,
    }
}

/// Looks through a note segment for the Xen note that names the PVH entry point.
fn pvh_entry(notes: &[u8]) -> Option<u64> {
    let mut rest = notes;
    while rest.len() >= 12 {
        let header = Fields(rest.get(..12)?);
        let name = range(12, header.number(0, 4))?;
        let descriptor = range(padded(name.end)?, header.number(4, 4))?;
        let value = rest.get(descriptor.clone())?;
        if header.number(8, 4) == PHYS32_ENTRY
            && rest.get(name)? == b"Xen\0"
            && matches!(value.len(), 4 | 8)
        {
            return Some(Fields(value).number(0, value.len()));
        }
        rest = rest.get(usize::try_from(padded(descriptor.end)?).ok()?..)?;
    }
    None
}

/// The next multiple of four.
fn padded(offset: usize) -> Option<u64> {
    offset
        .checked_next_multiple_of(4)
        .map(|offset| offset as u64)
}

fn range(start: u64, size: u64) -> Option<Range<usize>> {
    let end = start.checked_add(size)?;
    Some(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

/// Little-endian numbers out of a slice whose length has been checked; outside of it everything is zero.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn number(&self, at: usize, width: usize) -> u64 {
        let bytes = self.0.iter().skip(at).take(width);
        bytes
            .rev()
            .fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn half(&self, at: usize) -> u16 {
        u16::try_from(self.number(at, 2)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
