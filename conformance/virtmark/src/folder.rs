//! The folder of a run: the journal, what is derived from it, and evidence; `latest` points at the newest.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Where runs are kept unless told otherwise.
const ROOT: &str = "target/conformance";

/// The folder of one run.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Makes the folder of a new run.
    pub(crate) fn create(given: Option<&Path>, run: &str) -> io::Result<Self> {
        let path = given.map_or_else(|| Path::new(ROOT).join(run), Path::to_owned);
        fs::create_dir_all(&path)?;
        if given.is_none() {
            point_latest_at(Path::new(ROOT), run)?;
        }
        Ok(Self { path })
    }

    /// A folder that is there: its path, a run's id under the usual root, or `latest`.
    pub(crate) fn open(name: &str) -> Self {
        let direct = PathBuf::from(name);
        let path = if direct.is_dir() {
            direct
        } else {
            Path::new(ROOT).join(name)
        };
        Self { path }
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path.join("events.ndjson")
    }

    pub(crate) fn report(&self) -> PathBuf {
        self.path.join("report.json")
    }

    pub(crate) fn junit(&self) -> PathBuf {
        self.path.join("junit.xml")
    }

    pub(crate) fn html(&self) -> PathBuf {
        self.path.join("report.html")
    }

    pub(crate) fn evidence(&self) -> PathBuf {
        self.path.join("evidence")
    }
}

/// A link that is made aside and moved into place: whoever looks meanwhile finds the old one or the new one.
fn point_latest_at(root: &Path, run: &str) -> io::Result<()> {
    let aside = root.join(format!(".latest-{run}"));
    std::os::unix::fs::symlink(run, &aside)?;
    fs::rename(&aside, root.join("latest"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latest_follows_the_newest_run() {
        let root = tempfile::tempdir().unwrap();
        for run in ["a", "b"] {
            fs::create_dir(root.path().join(run)).unwrap();
            point_latest_at(root.path(), run).unwrap();
        }
        assert_eq!(
            fs::read_link(root.path().join("latest")).unwrap(),
            Path::new("b")
        );
    }
}
