//! Tells what is wrong with a library before anything runs. Every rule has a number, so that it can be looked up.
//!
//! | Rule | What it wants |
//! |---|---|
//! | L01 | ids are unique, and a scenario's file carries its id |
//! | L02 | clauses exist; each one listed is tested here; each one tested is listed |
//! | L03 | assertions and checking steps name mutants, and those exist |
//! | L04 | a scenario with a refusal has an accepted control |
//! | L05 | step and assertion ids of a scenario are unique |
//! | L06 | kinds exist, and what is asserted is recorded |
//! | L07 | moments exist, come in order, and do not wait for themselves |
//! | L08 | features exist: in scenarios, clauses, profiles and platforms |
//! | L09 | waits are bounded |
//! | L10 | MUST clauses have a scenario or say why none can be; mutants are used |
//! | L11 | templates exist and can be filled |
//! | L12 | steps are complete |

mod scenario;
mod spec;

use std::{fmt, path::PathBuf};

use crate::library::Library;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// The rule.
    pub rule: &'static str,
    /// Where.
    pub file: PathBuf,
    /// What.
    pub message: String,
}

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// It could be better.
    Warning,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(
            f,
            "{}: {word}[{}]: {}",
            self.file.display(),
            self.rule,
            self.message
        )
    }
}

/// Looks at everything.
pub fn lint(library: &Library) -> Vec<Problem> {
    let mut problems = Problems::default();
    for loaded in &library.scenarios {
        scenario::lint(library, loaded, &mut problems);
    }
    spec::lint(library, &mut problems);
    problems.found
}

#[derive(Default)]
struct Problems {
    found: Vec<Problem>,
}

impl Problems {
    fn error(&mut self, rule: &'static str, file: impl Into<PathBuf>, message: String) {
        self.found.push(Problem {
            severity: Severity::Error,
            rule,
            file: file.into(),
            message,
        });
    }

    fn warning(&mut self, rule: &'static str, file: impl Into<PathBuf>, message: String) {
        self.found.push(Problem {
            severity: Severity::Warning,
            rule,
            file: file.into(),
            message,
        });
    }
}
