//! The scenarios and data files: those inside the binary, or those of a folder.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use conformance_report::ExitCode;
use conformance_scenario::{
    Library,
    library::LibraryError,
    lint::{Problem as LintProblem, Severity, lint},
    spec::Platform,
};

use crate::{cli::SuiteArgs, problem::Problem};

mod embedded {
    include!(concat!(env!("OUT_DIR"), "/embedded.rs"));
}

/// Reads everything.
pub(crate) fn load(args: &SuiteArgs) -> Result<Library, Problem> {
    let folder = tempfile::tempdir().context("failed to make a temporary folder")?;
    let place = |given: &Option<PathBuf>, name: &str, files| match given {
        Some(given) => Ok(given.clone()),
        None => unpack(&folder.path().join(name), files),
    };
    let scenarios = place(&args.scenarios, "scenarios", embedded::SCENARIOS)?;
    let spec = place(&args.spec, "spec", embedded::SPEC)?;
    let mut library = Library::load(&scenarios, &spec).map_err(unreadable)?;
    for loaded in &mut library.scenarios {
        if let Ok(relative) = loaded.file.strip_prefix(folder.path()) {
            loaded.file = relative.to_owned();
        }
    }
    for (file, _) in &mut library.spec.clauses {
        if let Ok(relative) = file.strip_prefix(folder.path()) {
            *file = relative.to_owned();
        }
    }
    Ok(library)
}

/// The rule that wants every clause tested: a matter of this suite as a whole, not of someone's own folder of scenarios.
const COVERAGE: &str = "L10";

/// Reads everything and refuses what the linter calls an error: a broken scenario proves nothing.
pub(crate) fn load_sound(args: &SuiteArgs) -> Result<Library, Problem> {
    let library = load(args)?;
    let errors: Vec<String> = lint(&library)
        .iter()
        .filter(|problem| problem.severity == Severity::Error && problem.rule != COVERAGE)
        .map(LintProblem::to_string)
        .collect();
    if errors.is_empty() {
        Ok(library)
    } else {
        let text = format!(
            "the suite has {} error(s)\n{}",
            errors.len(),
            errors.join("\n")
        );
        Err(Problem::text(ExitCode::UnknownName, text).remedy("`virtmark lint` lists warnings too"))
    }
}

/// The adapter of a platform by its name.
pub(crate) fn platform(library: &Library, name: &str) -> Result<Platform, Problem> {
    let platforms = &library.spec.platforms;
    let found = platforms.iter().find(|platform| platform.name == name);
    found.cloned().ok_or_else(|| {
        let known: Vec<&str> = platforms
            .iter()
            .map(|platform| platform.name.as_str())
            .collect();
        let text = format!(
            "unknown platform \"{name}\": known are {}",
            known.join(", ")
        );
        Problem::text(ExitCode::UnknownName, text)
    })
}

fn unpack(folder: &Path, files: &[(&str, &str)]) -> Result<PathBuf, Problem> {
    for (name, text) in files {
        let file = folder.join(name);
        let parent = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent)
            .and_then(|()| std::fs::write(&file, text))
            .with_context(|| format!("failed to unpack {name}"))?;
    }
    Ok(folder.to_owned())
}

fn unreadable(error: LibraryError) -> Problem {
    let lines: Vec<String> = error.errors.iter().map(ToString::to_string).collect();
    Problem::text(
        ExitCode::UnknownName,
        format!("{error}\n{}", lines.join("\n")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_the_binary_is_sound() {
        let args = SuiteArgs {
            scenarios: None,
            spec: None,
        };
        let library = load_sound(&args).unwrap();
        assert!(library.scenarios.len() >= 19);
        assert!(
            library
                .scenarios
                .iter()
                .all(|loaded| loaded.file.is_relative())
        );
    }

    #[test]
    fn an_unknown_platform_is_named_with_the_known_ones() {
        let library = load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        let problem = platform(&library, "nope").unwrap_err();
        assert_eq!(problem.code, ExitCode::UnknownName);
        assert!(problem.error.to_string().contains("reference"));
    }
}
