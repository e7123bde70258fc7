//! Exit codes. Scripts rely on them; several may apply, and our own fault goes first.

use conformance_judge::{Blame, Status};

use crate::{
    claim::Word,
    report::{ConformanceReport, Mode},
};

/// What the program ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExitCode {
    /// The verdict asked for holds.
    Holds,
    /// Wrong words on the command line.
    Usage,
    /// Nothing ran.
    NothingRan,
    /// Interrupted, work outstanding.
    Interrupted,
    /// A digest, a chain or a shape is broken.
    NotGenuine,
    /// A bug in the suite.
    HarnessFault,
    /// It could not be told: try again.
    Inconclusive,
    /// Suite and platform versions do not match.
    Versions,
    /// A filter, id, feature or profile that does not exist, or a scenario that cannot be read.
    UnknownName,
    /// The environment is not ready.
    Environment,
    /// A product failure, an unexpected pass, an incomplete claim.
    Failed,
    /// The report could not be written.
    ReportNotWritten,
}

impl ExitCode {
    /// The number.
    pub fn code(self) -> u8 {
        match self {
            Self::Holds => 0,
            Self::Usage => 2,
            Self::NothingRan => 4,
            Self::Interrupted => 5,
            Self::NotGenuine => 65,
            Self::HarnessFault => 70,
            Self::Inconclusive => 75,
            Self::Versions => 92,
            Self::UnknownName => 94,
            Self::Environment => 96,
            Self::Failed => 100,
            Self::ReportNotWritten => 110,
        }
    }
}

/// Which verdict was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// A profile's.
    Profile(String),
    /// That of the scenarios that were selected, and no claim.
    Selection,
}

/// What a run ends with.
pub fn of_run(report: &ConformanceReport, asked: &Asked) -> ExitCode {
    let applies = [
        (harness_fault(report), ExitCode::HarnessFault),
        (environment(report), ExitCode::Environment),
        (failed(report, asked), ExitCode::Failed),
        (inconclusive(report, asked), ExitCode::Inconclusive),
        (report.run.interrupted, ExitCode::Interrupted),
        (nothing_ran(report), ExitCode::NothingRan),
    ];
    applies
        .into_iter()
        .find(|(applies, _)| *applies)
        .map_or(ExitCode::Holds, |(_, code)| code)
}

fn harness_fault(report: &ConformanceReport) -> bool {
    report
        .results
        .iter()
        .any(|result| result.status == Status::Error && result.blame != Some(Blame::Environment))
        || !report.foreign.is_empty()
}

fn environment(report: &ConformanceReport) -> bool {
    report
        .results
        .iter()
        .any(|result| result.status == Status::Error && result.blame == Some(Blame::Environment))
}

fn failed(report: &ConformanceReport, asked: &Asked) -> bool {
    let is = |wanted: &[Status]| {
        report
            .results
            .iter()
            .any(|result| wanted.contains(&result.status))
    };
    if is(&[Status::Fail, Status::Blocked, Status::UnexpectedPass]) {
        return true;
    }
    match asked {
        // An interrupted run, or one in which nothing ran, has a code of its own.
        Asked::Profile(_) if report.run.interrupted || nothing_ran(report) => false,
        Asked::Profile(name) => {
            let result = report.profiles.iter().find(|profile| profile.name == *name);
            result.is_none_or(|profile| {
                matches!(profile.verdict, Word::NonConformant | Word::Incomplete)
            })
        }
        Asked::Selection => is(&[Status::Skipped]) && !is(&[Status::Pass]),
    }
}

fn inconclusive(report: &ConformanceReport, asked: &Asked) -> bool {
    let doubt = report
        .results
        .iter()
        .any(|result| result.status == Status::Inconclusive);
    let of_profile = match asked {
        Asked::Profile(name) => report
            .profiles
            .iter()
            .any(|profile| profile.name == *name && profile.verdict == Word::Inconclusive),
        Asked::Selection => false,
    };
    // What an interruption left undecided is outstanding work, not doubt.
    (doubt || of_profile) && !report.run.interrupted
}

fn nothing_ran(report: &ConformanceReport) -> bool {
    report.run.mode != Mode::Run && report.run.mode != Mode::Converted
        || report
            .results
            .iter()
            .all(|result| result.status == Status::NotApplicable)
}
