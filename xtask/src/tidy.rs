//! What no compiler checks: who may depend on whom, how long a file may be, that links in prose lead
//! somewhere, and that no path of one machine is committed. Every rule reports all it finds.

mod length;
mod links;
mod manifests;
mod words;

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{progress::say, run::Cmd};

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where, relative to the root.
    pub place: String,
    /// What is wrong and what to do about it.
    pub what: String,
}

/// The files that git knows or would add, with their text; binary files are left out.
pub struct Tree {
    root: PathBuf,
    files: Vec<(String, String)>,
}

impl Tree {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let list = Cmd::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .dir(root)
            .output()?;
        let files = list
            .lines()
            .filter_map(|name| {
                let text = std::fs::read_to_string(root.join(name)).ok()?;
                Some((name.to_owned(), text))
            })
            .collect();
        Ok(Self {
            root: root.to_owned(),
            files,
        })
    }

    fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
    }
}

/// Checks everything; an error lists all findings.
pub fn run(root: &Path) -> anyhow::Result<()> {
    let tree = Tree::read(root)?;
    let metadata = Cmd::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .dir(root)
        .output()?;
    let metadata = serde_json::from_str(&metadata).context("failed to read cargo metadata")?;
    let mut findings = manifests::check(&metadata, &tree);
    findings.extend(length::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(words::check(&tree));
    if findings.is_empty() {
        say!("tidy: {} files, nothing to mend", tree.files.len());
        return Ok(());
    }
    for finding in &findings {
        say!("{}: {}", finding.place, finding.what);
    }
    anyhow::bail!("tidy: {} to mend", findings.len())
}
