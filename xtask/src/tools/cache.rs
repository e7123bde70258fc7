//! Whether a directory of programs is what was built: a wrong or truncated program must not cost
//! somebody an afternoon. Digests are taken once at the build; later a program whose size and change
//! times are those of the last good check is trusted, any other is read again.

use std::{collections::BTreeMap, fs, io::Read as _, os::unix::fs::MetadataExt as _, path::Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const FILE: &str = "digests.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Seal {
    sha256: String,
    stamp: Stamp,
}

/// What changes when a file does; nobody can set a change time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

type Seals = BTreeMap<String, Seal>;

/// Records the programs as they are now.
pub fn seal(dir: &Path, programs: &[&str]) -> anyhow::Result<()> {
    let mut seals = Seals::new();
    for name in programs {
        let path = dir.join(name);
        let seal = Seal {
            sha256: sha256(&path)?,
            stamp: stamp(&path)?,
        };
        seals.insert((*name).to_owned(), seal);
    }
    fs::write(dir.join(FILE), serde_json::to_vec_pretty(&seals)?)?;
    Ok(())
}

/// Whether every program is there and is the one that was sealed.
pub fn is_whole(dir: &Path, programs: &[&str]) -> bool {
    let Some(mut seals) = read(dir) else {
        return false;
    };
    let mut renewed = false;
    for name in programs {
        let Some(seal) = seals.get_mut(*name) else {
            return false;
        };
        let path = dir.join(name);
        let Ok(now) = stamp(&path) else {
            return false;
        };
        if now == seal.stamp {
            continue;
        }
        if sha256(&path).ok().as_deref() != Some(&seal.sha256) {
            return false;
        }
        // Moved or copied, but the same bytes.
        seal.stamp = now;
        renewed = true;
    }
    if renewed && let Ok(bytes) = serde_json::to_vec_pretty(&seals) {
        // A cache that cannot be written is checked again next time.
        drop(fs::write(dir.join(FILE), bytes));
    }
    true
}

fn read(dir: &Path) -> Option<Seals> {
    serde_json::from_slice(&fs::read(dir.join(FILE)).ok()?).ok()
}

fn stamp(path: &Path) -> std::io::Result<Stamp> {
    let meta = fs::metadata(path)?;
    Ok(Stamp {
        size: meta.size(),
        modified: (meta.mtime(), meta.mtime_nsec()),
        changed: (meta.ctime(), meta.ctime_nsec()),
    })
}

fn sha256(path: &Path) -> std::io::Result<String> {
    let mut file = fs::File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let n = file.read(&mut buffer)?;
        if n == 0 {
            return Ok(hasher
                .finalize()
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect());
        }
        hasher.update(&buffer[..n]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "program a").unwrap();
        seal(dir.path(), &["a"]).unwrap();
        dir
    }

    #[test]
    fn what_was_sealed_is_whole() {
        let dir = sealed();
        assert!(is_whole(dir.path(), &["a"]));
        assert!(!is_whole(dir.path(), &["a", "b"]));
    }

    #[test]
    fn a_truncated_program_is_found() {
        let dir = sealed();
        fs::write(dir.path().join("a"), "program").unwrap();
        assert!(!is_whole(dir.path(), &["a"]));
    }

    #[test]
    fn a_changed_program_of_the_same_size_is_found() {
        let dir = sealed();
        fs::write(dir.path().join("a"), "program b").unwrap();
        assert!(!is_whole(dir.path(), &["a"]));
    }

    #[test]
    fn a_copy_of_the_same_bytes_is_whole() {
        let dir = sealed();
        fs::remove_file(dir.path().join("a")).unwrap();
        fs::write(dir.path().join("a"), "program a").unwrap();
        assert!(is_whole(dir.path(), &["a"]));
        fs::remove_file(dir.path().join("a")).unwrap();
        assert!(!is_whole(dir.path(), &["a"]));
    }
}
