//! The one place where YAML is read. Our own words are strict; manifests follow kubectl's rules.
//!
//! Two sets of options because the two dialects differ where it hurts: `yes` is text in a scenario and
//! `true` in a manifest, `0644` is an error of ours and 420 in a manifest.

use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, Options};

/// A file that could not be read, with the place in it.
#[derive(Debug, thiserror::Error)]
pub enum YamlError {
    /// The file could not be opened.
    #[error("failed to read {}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The text is not YAML, or not of the shape that is wanted.
    #[error("{}:{line}:{column}: {message}", file.display())]
    Parse {
        /// The file.
        file: PathBuf,
        /// Line, from 1; 0 when unknown.
        line: u64,
        /// Column, from 1; 0 when unknown.
        column: u64,
        /// What is wrong there.
        message: String,
    },
}

/// Reads a file of our own language: unknown and duplicate keys refused, only `true` and `false` are booleans.
pub fn parse_words<T: DeserializeOwned>(file: &Path, text: &str) -> Result<T, YamlError> {
    parse(file, text, strict())
}

/// Reads a manifest the way kubectl does, except that a duplicate key is an error.
pub fn parse_manifest(file: &Path, text: &str) -> Result<Value, YamlError> {
    parse(file, text, like_kubectl())
}

/// Reads a file into memory, naming it when that fails.
pub fn read(file: &Path) -> Result<String, YamlError> {
    std::fs::read_to_string(file).map_err(|source| YamlError::Read {
        file: file.to_owned(),
        source,
    })
}

fn parse<T: DeserializeOwned>(file: &Path, text: &str, options: Options) -> Result<T, YamlError> {
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location();
        YamlError::Parse {
            file: file.to_owned(),
            line: location.map_or(0, |at| at.line()),
            column: location.map_or(0, |at| at.column()),
            message: bare_message(&error),
        }
    })
}

/// The message without the position, which we print in front in the form that editors understand.
fn bare_message(error: &serde_saphyr::Error) -> String {
    let text = error.without_snippet().to_string();
    let first = text.lines().next().unwrap_or_default();
    match first.rsplit_once(" at line ") {
        Some((message, _)) => message.to_owned(),
        None => first.to_owned(),
    }
}

fn strict() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        strict_booleans: true,
        with_snippet: false,
    }
}

fn like_kubectl() -> Options {
    serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::Error,
        legacy_octal_numbers: true,
        strict_booleans: false,
        with_snippet: false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("a: yes", json!({"a": "yes"}))]
    #[case("a: true", json!({"a": true}))]
    #[case("a: 3", json!({"a": 3}))]
    #[case("a: \"3\"", json!({"a": "3"}))]
    fn our_words_take_only_true_and_false(#[case] text: &str, #[case] wanted: Value) {
        assert_eq!(
            parse_words::<Value>(Path::new("x.yaml"), text).unwrap(),
            wanted
        );
    }

    #[rstest]
    #[case("a: yes", json!({"a": true}))]
    #[case("a: 0644", json!({"a": 420}))]
    fn manifests_read_as_kubectl_reads_them(#[case] text: &str, #[case] wanted: Value) {
        assert_eq!(parse_manifest(Path::new("x.yaml"), text).unwrap(), wanted);
    }

    #[rstest]
    #[case("a: 1\nb: 2\na: 3\n", "x.yaml:3:")]
    #[case("a:\n\t- b\n", "x.yaml:2:")]
    #[case("a: [1, 2\n", "x.yaml:")]
    fn errors_name_file_and_line(#[case] text: &str, #[case] place: &str) {
        let error = parse_words::<Value>(Path::new("x.yaml"), text)
            .unwrap_err()
            .to_string();
        assert!(error.starts_with(place), "{error}");
    }
}
