//! A tree of files read as a whole: scenarios, templates and the data beside them.
//!
//! Reading collects every error before it gives up, so that an author mends a tree in one go. Digests are taken from
//! the bytes of the files; they name the very text that a verdict was reached with.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    ids::{MutantId, ScenarioId},
    model::Scenario,
    spec::{Clause, Clauses, Feature, Features, Mutant, Mutants, Platform, Profile, Timeouts},
    yaml::{self, YamlError},
};

/// Everything that was read.
#[derive(Debug, Clone)]
pub struct Library {
    /// Scenarios in order of their ids.
    pub scenarios: Vec<Loaded<Scenario>>,
    /// Templates by file name.
    pub templates: BTreeMap<String, Value>,
    /// The data files.
    pub spec: SpecFiles,
}

/// One file and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded<T> {
    /// Where it was read, relative to the tree's root where possible.
    pub file: PathBuf,
    /// `sha256:…` of the bytes.
    pub digest: String,
    /// What it says.
    pub value: T,
}

/// The data files.
#[derive(Debug, Clone)]
pub struct SpecFiles {
    /// All clauses with the file each one stands in.
    pub clauses: Vec<(PathBuf, Clause)>,
    /// All features.
    pub features: Vec<Feature>,
    /// All profiles.
    pub profiles: Vec<Profile>,
    /// The table of times.
    pub timeouts: Timeouts,
    /// All mutants.
    pub mutants: Vec<Mutant>,
    /// All platforms.
    pub platforms: Vec<Platform>,
}

/// A tree that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("{} file(s) could not be read", errors.len())]
pub struct LibraryError {
    /// Every error that was met.
    pub errors: Vec<YamlError>,
}

impl Library {
    /// Reads `scenarios` (areas with files in them, and `templates/`) and `spec`.
    pub fn load(scenarios: &Path, spec: &Path) -> Result<Self, LibraryError> {
        let mut reader = Reader { errors: Vec::new() };
        let templates = reader.templates(&scenarios.join("templates"));
        let mut read = reader.scenarios(scenarios);
        read.sort_by(|a, b| (a.value.id(), &a.file).cmp(&(b.value.id(), &b.file)));
        let spec = reader.spec(spec);
        match spec {
            Some(spec) if reader.errors.is_empty() => Ok(Self {
                scenarios: read,
                templates,
                spec,
            }),
            _ => Err(LibraryError {
                errors: reader.errors,
            }),
        }
    }

    /// A scenario by its id.
    pub fn scenario(&self, id: &ScenarioId) -> Option<&Loaded<Scenario>> {
        self.scenarios.iter().find(|loaded| loaded.value.id() == id)
    }

    /// A mutant by its id.
    pub fn mutant(&self, id: &MutantId) -> Option<&Mutant> {
        self.spec.mutants.iter().find(|mutant| mutant.id == *id)
    }

    /// One digest over all scenarios: it changes when any of them does.
    pub fn digest(&self) -> String {
        let mut all = Sha256::new();
        for loaded in &self.scenarios {
            all.update(loaded.value.id().as_str());
            all.update(" ");
            all.update(&loaded.digest);
            all.update("\n");
        }
        hex(&all.finalize())
    }
}

/// Reads one scenario from text.
pub fn parse_scenario(file: &Path, text: &str) -> Result<Loaded<Scenario>, YamlError> {
    Ok(Loaded {
        file: file.to_owned(),
        digest: digest(text.as_bytes()),
        value: yaml::parse_words(file, text)?,
    })
}

/// `sha256:…` of some bytes.
pub fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::from("sha256:"), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

struct Reader {
    errors: Vec<YamlError>,
}

impl Reader {
    fn keep<T>(&mut self, result: Result<T, YamlError>) -> Option<T> {
        result.map_err(|error| self.errors.push(error)).ok()
    }

    fn words<T: DeserializeOwned>(&mut self, file: &Path) -> Option<T> {
        let text = self.keep(yaml::read(file))?;
        self.keep(yaml::parse_words(file, &text))
    }

    fn templates(&mut self, folder: &Path) -> BTreeMap<String, Value> {
        let mut templates = BTreeMap::new();
        for file in self.yaml_files(folder, Depth::Flat) {
            let Some(text) = self.keep(yaml::read(&file)) else {
                continue;
            };
            let parsed = yaml::parse_manifest(&file, &text);
            if let (Some(value), Some(name)) = (self.keep(parsed), file.file_name()) {
                templates.insert(name.to_string_lossy().into_owned(), value);
            }
        }
        templates
    }

    fn scenarios(&mut self, root: &Path) -> Vec<Loaded<Scenario>> {
        let mut read = Vec::new();
        for file in self.yaml_files(root, Depth::Deep) {
            let Some(text) = self.keep(yaml::read(&file)) else {
                continue;
            };
            let parsed = parse_scenario(&file, &text);
            read.extend(self.keep(parsed));
        }
        read
    }

    fn spec(&mut self, root: &Path) -> Option<SpecFiles> {
        let mut clauses = Vec::new();
        for file in self.yaml_files(&root.join("clauses"), Depth::Flat) {
            let read: Option<Clauses> = self.words(&file);
            clauses.extend(
                read.into_iter()
                    .flat_map(|read| read.clauses)
                    .map(|clause| (file.clone(), clause)),
            );
        }
        let profiles = self.all(&root.join("profiles"));
        let platforms = self.all(&root.join("platforms"));
        let features: Option<Features> = self.words(&root.join("features.yaml"));
        let timeouts = self.words(&root.join("timeouts.yaml"));
        let mutants: Option<Mutants> = self.words(&root.join("mutants.yaml"));
        Some(SpecFiles {
            clauses,
            features: features?.features,
            profiles,
            timeouts: timeouts?,
            mutants: mutants?.mutants,
            platforms,
        })
    }

    fn all<T: DeserializeOwned>(&mut self, folder: &Path) -> Vec<T> {
        self.yaml_files(folder, Depth::Flat)
            .iter()
            .filter_map(|file| self.words(file))
            .collect()
    }

    /// YAML files in a stable order. `templates` is skipped when going deep: it holds manifests.
    fn yaml_files(&mut self, folder: &Path, depth: Depth) -> Vec<PathBuf> {
        let listing = std::fs::read_dir(folder).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        });
        let listing = listing.map_err(|source| YamlError::Read {
            file: folder.to_owned(),
            source,
        });
        let mut entries = self.keep(listing).unwrap_or_default();
        entries.sort();
        let mut files = Vec::new();
        for path in entries {
            if path.is_dir() {
                if depth == Depth::Deep && path.file_name().is_some_and(|name| name != "templates")
                {
                    files.extend(self.yaml_files(&path, depth));
                }
            } else if path
                .extension()
                .is_some_and(|ending| ending == "yaml" || ending == "yml")
            {
                files.push(path);
            }
        }
        files
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Depth {
    Flat,
    Deep,
}
