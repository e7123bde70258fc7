//! Waits for changes in one directory. The kernel tells (inotify), so nothing here looks again and again:
//! the device plugins use it for the kubelet's socket and for device files, sessions for launcher sockets.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::io::{Interest, unix::AsyncFd};

/// What happened to a name in the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The name appeared.
    Created(String),
    /// The name went away.
    Removed(String),
    /// The directory itself is gone, or events were lost: look at everything again.
    Unknown,
}

/// A watch on one directory, in place from construction on: what happens later is not missed.
#[derive(Debug)]
pub struct DirWatch {
    fd: AsyncFd<OwnedFd>,
    pending: Vec<Change>,
}

impl DirWatch {
    /// Watches `dir`, which must exist.
    ///
    /// # Errors
    /// When the kernel refuses the watch, for instance because `dir` does not exist.
    pub fn new(dir: &Path) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        inotify::add_watch(
            &fd,
            dir,
            WatchFlags::CREATE
                | WatchFlags::MOVED_TO
                | WatchFlags::DELETE
                | WatchFlags::MOVED_FROM
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR,
        )?;
        Ok(Self {
            fd: register(fd)?,
            pending: Vec::new(),
        })
    }

    /// The next change. Safe to drop half way: no change is lost.
    ///
    /// # Errors
    /// When the kernel's queue can no longer be read.
    pub async fn next(&mut self) -> io::Result<Change> {
        loop {
            if !self.pending.is_empty() {
                return Ok(self.pending.remove(0));
            }
            let mut ready = self.fd.readable().await?;
            match ready.try_io(|fd| read_changes(fd.get_ref())) {
                Ok(changes) => self.pending = changes?,
                Err(_would_block) => {}
            }
        }
    }
}

#[expect(unsafe_code, reason = "tokio asks for a promise about the descriptor")]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and keeps its file until it is dropped, and it is moved into the
    // `AsyncFd`, which gives out shared references only.
    unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.map_err(io::Error::from)
}

fn read_changes(fd: &OwnedFd) -> io::Result<Vec<Change>> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(fd, &mut buffer);
    let mut changes = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::WOULDBLOCK) if !changes.is_empty() => return Ok(changes),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        };
        let name = event
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        changes.push(meaning(event.events(), name));
        if reader.is_buffer_empty() {
            return Ok(changes);
        }
    }
}

fn meaning(flags: ReadFlags, name: Option<String>) -> Change {
    match name {
        Some(name) if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) => {
            Change::Created(name)
        }
        Some(name) if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) => {
            Change::Removed(name)
        }
        _ => Change::Unknown,
    }
}

/// The closest directory above `path` that exists: where a watch can be set for a file that may appear.
#[must_use]
pub fn nearest_dir(path: &Path) -> PathBuf {
    path.ancestors()
        .skip(1)
        .find(|dir| dir.is_dir())
        .unwrap_or_else(|| Path::new("/"))
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tells_what_came_and_what_went() {
        let dir = tempfile::tempdir().unwrap();
        let mut watch = DirWatch::new(dir.path()).unwrap();
        std::fs::write(dir.path().join("a"), b"").unwrap();
        std::fs::rename(dir.path().join("a"), dir.path().join("b")).unwrap();
        std::fs::remove_file(dir.path().join("b")).unwrap();
        let mut seen = Vec::new();
        for _ in 0..4 {
            seen.push(watch.next().await.unwrap());
        }
        let created = |n: &str| Change::Created(n.to_owned());
        let removed = |n: &str| Change::Removed(n.to_owned());
        assert_eq!(
            seen,
            [created("a"), removed("a"), created("b"), removed("b")]
        );
    }

    #[tokio::test]
    async fn tells_that_the_directory_went_away() {
        let parent = tempfile::tempdir().unwrap();
        let dir = parent.path().join("d");
        std::fs::create_dir(&dir).unwrap();
        let mut watch = DirWatch::new(&dir).unwrap();
        std::fs::remove_dir(&dir).unwrap();
        assert_eq!(watch.next().await.unwrap(), Change::Unknown);
    }

    #[test]
    fn a_missing_directory_is_an_error_and_the_nearest_one_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let missing = dir.path().join("net/deep/tun");
        assert!(DirWatch::new(missing.parent().unwrap()).is_err());
        assert_eq!(nearest_dir(&missing), dir.path());
    }
}
