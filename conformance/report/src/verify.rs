//! Derives a report again from its journal and tells every difference.
//!
//! Needs no cluster and no network: journal, report and scenarios are enough. A report that was edited, a journal that
//! was shortened, a scenario that was swapped: each is found here, with the place named.

use std::fmt;

use conformance_journal::{Ending, Journal};
use conformance_scenario::Library;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    exit::ExitCode,
    report::{ConformanceReport, derive},
};

/// One step of a verification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub step: Step,
    /// What is wrong; nothing when it is right.
    pub wrong: Vec<String>,
}

/// The steps, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// The report has the shape of a report, and is none of a plan.
    Schema,
    /// The journal's lines hang together, and it has an end.
    Chain,
    /// The report names this very journal.
    SameJournal,
    /// The scenarios at hand are those of the run.
    SameScenarios,
    /// Every verdict and all else comes out the same again.
    Rejudge,
}

/// Verifies a report. Steps that cannot be taken because an earlier one failed are left out.
pub fn verify(library: &Library, report: &str, journal: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut note = |step, wrong: Vec<String>| {
        let right = wrong.is_empty();
        findings.push(Finding { step, wrong });
        right
    };
    let parsed = parse(report);
    let schema = parsed.as_ref().err().cloned().into_iter().collect();
    let whole = Journal::parse(journal);
    let chain = match &whole {
        Ok(journal) if journal.ending == Ending::Complete => Vec::new(),
        Ok(_) => vec![
            "the journal has no end: the run was interrupted, or lines were cut off".to_owned(),
        ],
        Err(error) => vec![error.to_string()],
    };
    let right = note(Step::Schema, schema);
    let unbroken = note(Step::Chain, chain);
    let (true, true, Ok((given, typed)), Ok(journal)) = (right, unbroken, parsed, whole) else {
        return findings;
    };
    note(Step::SameJournal, same_journal(&typed, &journal));
    let again = derive(library, &journal);
    note(Step::SameScenarios, same_scenarios(library, &again));
    let again = serde_json::to_value(&again).unwrap_or(Value::Null);
    let mut different = Vec::new();
    compare("", &given, &again, &mut different);
    note(Step::Rejudge, different);
    findings
}

/// What a verification ends with: 0, 65 for what is not genuine, 100 for a verdict that does not come out again.
pub fn exit(findings: &[Finding]) -> ExitCode {
    let failed = |finding: &&Finding| !finding.wrong.is_empty();
    match findings.iter().find(failed).map(|finding| finding.step) {
        None if findings
            .last()
            .is_some_and(|last| last.step == Step::Rejudge) =>
        {
            ExitCode::Holds
        }
        Some(Step::Rejudge) => ExitCode::Failed,
        _ => ExitCode::NotGenuine,
    }
}

fn parse(report: &str) -> Result<(Value, ConformanceReport), String> {
    let value: Value =
        serde_json::from_str(report).map_err(|error| format!("not JSON: {error}"))?;
    let typed = ConformanceReport::deserialize(&value)
        .map_err(|error| format!("not a conformance report: {error}"))?;
    Ok((value, typed))
}

fn same_journal(report: &ConformanceReport, journal: &Journal) -> Vec<String> {
    let mut wrong = Vec::new();
    let run = journal
        .entries
        .first()
        .map_or("", |entry| entry.run.as_str());
    if report.run.id != run {
        wrong.push(format!(
            "the report is about run {}, the journal about run {run}",
            report.run.id
        ));
    }
    if report.journal.head != journal.head {
        wrong.push("the report names a journal with another last line".to_owned());
    }
    if report.journal.entries != journal.entries.len() {
        let (named, found) = (report.journal.entries, journal.entries.len());
        wrong.push(format!(
            "the report names a journal of {named} lines, there are {found}"
        ));
    }
    wrong
}

fn same_scenarios(library: &Library, again: &ConformanceReport) -> Vec<String> {
    let mut wrong: Vec<String> = again
        .foreign
        .iter()
        .map(|id| format!("scenario {id} was run with another text"))
        .collect();
    if again.suite.scenarios_digest != library.digest() {
        wrong.push(format!(
            "the run used suite {}, here is {}",
            again.suite.scenarios_digest,
            library.digest()
        ));
    }
    wrong
}

fn compare(path: &str, given: &Value, again: &Value, different: &mut Vec<String>) {
    match (given, again) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys().filter(|key| !a.contains_key(*key))) {
                let (a, b) = (
                    a.get(key).unwrap_or(&Value::Null),
                    b.get(key).unwrap_or(&Value::Null),
                );
                compare(&format!("{path}/{key}"), a, b, different);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{index}"), a, b, different);
            }
        }
        (a, b) if a == b => {}
        (a, b) => different.push(format!(
            "{path}: the report says {}, the journal gives {}",
            short(a),
            short(b)
        )),
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(120).collect()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Schema => "the report has the shape of a report",
            Self::Chain => "the journal is whole",
            Self::SameJournal => "the report names this journal",
            Self::SameScenarios => "the scenarios are those of the run",
            Self::Rejudge => "everything comes out the same again",
        })
    }
}
