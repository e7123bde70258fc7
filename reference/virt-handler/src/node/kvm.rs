//! Lets launchers open /dev/kvm: they run as an ordinary user, and a device plugin passes the file on with the
//! mode that it has on the node. The original opens it in the same way.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Reading and writing for everybody.
const OPEN_TO_ALL: u32 = 0o666;

/// The file's mode could not be changed.
#[derive(Debug, thiserror::Error)]
#[error("failed to open {} to launchers", path.display())]
pub struct ChmodError {
    path: PathBuf,
    source: io::Error,
}

/// Makes the device usable by every user; tells whether that was necessary. A missing device is left missing.
///
/// # Errors
/// [`ChmodError`] when the mode cannot be read or changed.
pub fn open_to_all(device: &Path) -> Result<bool, ChmodError> {
    let failed = |source| ChmodError {
        path: device.to_owned(),
        source,
    };
    let mode = match fs::metadata(device) {
        Ok(meta) => meta.permissions().mode(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    if mode & OPEN_TO_ALL == OPEN_TO_ALL {
        return Ok(false);
    }
    let open = fs::Permissions::from_mode(mode & 0o7777 | OPEN_TO_ALL);
    fs::set_permissions(device, open).map_err(failed)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_a_closed_file_once_and_leaves_a_missing_one() {
        let dir = tempfile::tempdir().unwrap();
        let device = dir.path().join("kvm");
        assert!(!open_to_all(&device).unwrap());
        fs::write(&device, b"").unwrap();
        fs::set_permissions(&device, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(open_to_all(&device).unwrap());
        assert_eq!(
            fs::metadata(&device).unwrap().permissions().mode() & 0o777,
            0o666
        );
        assert!(!open_to_all(&device).unwrap());
    }
}
