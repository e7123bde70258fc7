//! Recognises a qcow2 image and refuses one that would make QEMU open further files: the image comes
//! from a stranger, the files would be the launcher's.

use thiserror::Error;

/// How much of the file is needed.
pub(super) const HEAD: u64 = 80;

const MAGIC: &[u8] = b"QFI\xfb";
const VERSION: usize = 4;
const BACKING_FILE_OFFSET: usize = 8;
const INCOMPATIBLE_FEATURES: usize = 72;
/// Incompatible feature bit 2: the data is in another file.
const EXTERNAL_DATA_FILE: u64 = 1 << 2;

/// Why an image is refused.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Qcow2Error {
    /// It builds upon another file.
    #[error("it has a backing file")]
    BackingFile,
    /// It keeps its data elsewhere.
    #[error("it has an external data file")]
    ExternalData,
    /// The header is cut off.
    #[error("its qcow2 header is cut off")]
    Truncated,
}

/// Whether the file that starts with `head` is a qcow2 image that stands on its own.
pub(super) fn check(head: &[u8]) -> Result<bool, Qcow2Error> {
    if !head.starts_with(MAGIC) {
        return Ok(false);
    }
    let version = number(head, VERSION, 4)?;
    if number(head, BACKING_FILE_OFFSET, 8)? != 0 {
        return Err(Qcow2Error::BackingFile);
    }
    // Version 2 has no feature bits.
    if version >= 3 && number(head, INCOMPATIBLE_FEATURES, 8)? & EXTERNAL_DATA_FILE != 0 {
        return Err(Qcow2Error::ExternalData);
    }
    Ok(true)
}

/// A big-endian field.
fn number(head: &[u8], offset: usize, width: usize) -> Result<u64, Qcow2Error> {
    let bytes = head
        .get(offset..offset + width)
        .ok_or(Qcow2Error::Truncated)?;
    Ok(bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
pub(super) fn head(version: u32, backing_file_offset: u64, features: u64) -> Vec<u8> {
    let mut head = [
        MAGIC,
        &version.to_be_bytes(),
        &backing_file_offset.to_be_bytes(),
    ]
    .concat();
    head.resize(INCOMPATIBLE_FEATURES, 0);
    head.extend(features.to_be_bytes());
    head
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::empty(Vec::new(), Ok(false))]
    #[case::boot_sector(vec![0x33; 512], Ok(false))]
    #[case::version_2(head(2, 0, 0), Ok(true))]
    #[case::version_3(head(3, 0, 0), Ok(true))]
    #[case::dirty_bit(head(3, 0, 1), Ok(true))]
    #[case::backing_file(head(3, 104, 0), Err(Qcow2Error::BackingFile))]
    #[case::backing_file_in_version_2(head(2, 104, 0), Err(Qcow2Error::BackingFile))]
    #[case::external_data(head(3, 0, EXTERNAL_DATA_FILE), Err(Qcow2Error::ExternalData))]
    #[case::cut_off(head(3, 0, 0)[..75].to_vec(), Err(Qcow2Error::Truncated))]
    #[case::magic_alone(MAGIC.to_vec(), Err(Qcow2Error::Truncated))]
    fn images(#[case] head: Vec<u8>, #[case] expected: Result<bool, Qcow2Error>) {
        assert_eq!(check(&head), expected);
    }
}
