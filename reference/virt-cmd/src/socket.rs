//! Unix sockets at paths of any length.
//!
//! A socket address holds 107 bytes, and a path below the kubelet's directory is longer. Both ends
//! therefore name the socket through an open descriptor of its directory.

use std::{
    fs::{self, File, Permissions},
    io,
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
};

use tokio::net::{UnixListener, UnixStream};

/// Connects to the socket at `path`.
///
/// # Errors
/// The system's answer: `NotFound` before the launcher listens, `ConnectionRefused` after its death.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::of(path)?;
    UnixStream::connect(&short.path).await
}

/// Listens at `path` with the given permission bits. A socket that a predecessor left is replaced.
///
/// # Errors
/// The system's answer, for example when the directory is missing.
pub fn listen(path: &Path, mode: u32) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let short = ShortPath::of(path)?;
    let listener = UnixListener::bind(&short.path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    Ok(listener)
}

/// A name for a socket that always fits, valid while the directory is held open.
struct ShortPath {
    path: PathBuf,
    _directory: File,
}

impl ShortPath {
    fn of(path: &Path) -> io::Result<Self> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a socket needs a directory and a name",
            ));
        };
        let directory = File::open(if parent.as_os_str().is_empty() {
            Path::new(".")
        } else {
            parent
        })?;
        let path = Path::new("/proc/self/fd")
            .join(directory.as_raw_fd().to_string())
            .join(name);
        Ok(Self {
            path,
            _directory: directory,
        })
    }
}
