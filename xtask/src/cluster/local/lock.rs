//! One change of a cluster at a time: two `up` of one name, or `down` beside `up`, would undo each
//! other's work half-way. The kernel lets go of the lock when its holder is killed.

use std::fs::{self, File, TryLockError};

use anyhow::Context as _;

use super::state_root;
use crate::{cluster::plan::Name, progress::say};

/// Held while a cluster is being changed.
pub struct Lock {
    _file: File,
}

/// Takes the lock of the cluster of that name; waits for whoever has it.
pub fn take(name: &Name) -> anyhow::Result<Lock> {
    let dir = state_root()?.with_file_name("locks");
    fs::create_dir_all(&dir).with_context(|| format!("failed to make {}", dir.display()))?;
    let path = dir.join(name.to_string());
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("failed to open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say!("another cargo xtask is changing cluster {name}; waiting for it");
            file.lock()
                .with_context(|| format!("failed to lock {}", path.display()))?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("failed to lock {}", path.display()));
        }
    }
    Ok(Lock { _file: file })
}
