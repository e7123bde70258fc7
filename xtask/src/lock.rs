//! Locks between runs of this program. The kernel lets go of a lock when its holder is killed, so
//! there is nothing to clean up; the empty files stay, since removing them would be a race.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
};

use anyhow::Context as _;

use crate::progress::say;

/// Held while it lives.
pub struct Lock {
    _file: File,
}

/// Takes the lock that the file stands for; waits for whoever has it. `doing` completes the sentence
/// "another cargo xtask is …".
pub fn take(path: &Path, doing: &str) -> anyhow::Result<Lock> {
    let dir = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(dir).with_context(|| format!("failed to make {}", dir.display()))?;
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say!("another cargo xtask is {doing}; waiting for it");
            file.lock()
                .with_context(|| format!("failed to lock {}", path.display()))?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("failed to lock {}", path.display()));
        }
    }
    Ok(Lock { _file: file })
}

#[cfg(test)]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("locks/x");
        let first = take(&path, "testing").unwrap();
        let (sender, receiver) = mpsc::channel();
        let second = thread::spawn(move || {
            let lock = take(&path, "testing").unwrap();
            sender.send(()).unwrap();
            drop(lock);
        });
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
        drop(first);
        receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        second.join().unwrap();
    }
}
