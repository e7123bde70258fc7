//! The conformance report: derived from the scenarios and the journal of a run, and from nothing else.

use std::collections::{BTreeMap, BTreeSet};

pub use conformance_journal::entry::Mode;
use conformance_journal::{Event, Journal, Pace};
use conformance_judge::{Limits, RowOutcome, Status, Verdict, judge_run, sensitivity};
use conformance_scenario::{Library, model::Level};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::{FeatureResult, ProfileResult, Standing, features, profile};

/// The document that counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConformanceReport {
    /// `virtmark.dev/v1`
    pub api_version: String,
    /// `ConformanceReport`
    pub kind: Kind,
    /// The run.
    pub run: Run,
    /// The suite.
    pub suite: Suite,
    /// What was found before the run.
    pub platform: Value,
    /// Factors of the deadline classes.
    pub pace: Pace,
    /// Features that the platform claims.
    pub claims: Vec<String>,
    /// Profiles and what came of them.
    pub profiles: Vec<ProfileResult>,
    /// Features and what came of them.
    pub features: Vec<FeatureResult>,
    /// Scenarios and what came of them.
    pub results: Vec<Verdict>,
    /// Scenarios of the journal that are not at hand, or have another text here.
    pub foreign: Vec<String>,
    /// How much of the specification was looked at.
    pub coverage: Coverage,
    /// What green is worth.
    pub sensitivity: Sensitivity,
    /// What was left behind.
    pub cleanup: CleanupSum,
    /// The history that all this was derived from.
    pub journal: JournalRef,
}

/// The kind of document: a closed set of one, so that a plan can never be read as a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// This.
    ConformanceReport,
}

/// The run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Run {
    /// Its name.
    pub id: String,
    /// `run`; anything else carries no claim.
    pub mode: Mode,
    /// First line.
    pub started: Timestamp,
    /// Last line.
    pub ended: Timestamp,
    /// It has no end.
    pub interrupted: bool,
    /// Seed of the order.
    pub seed: u64,
    /// The command line.
    pub argv: Vec<String>,
}

/// The suite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// Its version.
    pub version: String,
    /// Over all its scenarios.
    pub scenarios_digest: String,
}

/// How much of the specification was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Coverage {
    /// MUST clauses.
    pub must_clauses: usize,
    /// Those with a scenario.
    pub with_scenario: usize,
    /// Those whose scenario reached a pass or a fail here.
    pub exercised_here: usize,
    /// Those that say why no scenario can test them.
    pub untestable: usize,
}

/// What green is worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sensitivity {
    /// Checks that need a mutant, in scenarios that passed.
    pub checks: usize,
    /// Pairs of check and mutant that were tried.
    pub tried: usize,
    /// Pairs in which the check noticed.
    pub killed: usize,
    /// Pairs in which it did not, and why.
    pub survivors: Vec<String>,
}

/// What was left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CleanupSum {
    /// Objects that were made.
    pub objects_created: u64,
    /// Objects that are left, with what holds them.
    pub leaked: Vec<String>,
}

/// The history that a report was derived from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct JournalRef {
    /// Hash of its last line, which holds the hash of the one before, and so on.
    pub head: String,
    /// How many lines.
    pub entries: usize,
}

/// Derives a report.
pub fn derive(library: &Library, journal: &Journal) -> ConformanceReport {
    let judged = judge_run(library, journal);
    let standing = Standing {
        is_run: judged.mode == Mode::Run,
        interrupted: judged.interrupted,
    };
    let verdicts = &judged.verdicts;
    let claims = &judged.claims;
    let (pace, platform) = environment(journal);
    let (version, scenarios_digest, argv, seed) = beginning(journal);
    let wall = |entry: Option<&conformance_journal::Entry>| {
        entry.map_or(Timestamp::UNIX_EPOCH, |entry| entry.wall)
    };
    ConformanceReport {
        api_version: "virtmark.dev/v1".to_owned(),
        kind: Kind::ConformanceReport,
        run: Run {
            id: judged.run,
            mode: judged.mode,
            started: wall(journal.entries.first()),
            ended: wall(journal.entries.last()),
            interrupted: judged.interrupted,
            seed,
            argv,
        },
        suite: Suite {
            version,
            scenarios_digest,
        },
        platform,
        profiles: library
            .spec
            .profiles
            .iter()
            .map(|one| profile(library, one, claims, verdicts, standing))
            .collect(),
        features: features(library, claims, verdicts),
        foreign: judged.foreign,
        coverage: coverage(library, verdicts),
        sensitivity: sensitivity_of(library, journal, verdicts, &pace),
        cleanup: cleanup(journal),
        journal: JournalRef {
            head: journal.head.clone(),
            entries: journal.entries.len(),
        },
        pace,
        claims: judged.claims,
        results: judged.verdicts,
    }
}

fn environment(journal: &Journal) -> (Pace, Value) {
    let found = journal.entries.iter().find_map(|entry| match &entry.event {
        Event::Env { pace, facts } => Some((pace.clone(), facts.clone())),
        _ => None,
    });
    found.unwrap_or_default()
}

fn beginning(journal: &Journal) -> (String, String, Vec<String>, u64) {
    let found = journal.entries.iter().find_map(|entry| match &entry.event {
        Event::RunStart {
            suite,
            scenarios_digest,
            argv,
            seed,
            ..
        } => Some((suite.clone(), scenarios_digest.clone(), argv.clone(), *seed)),
        _ => None,
    });
    found.unwrap_or_default()
}

fn coverage(library: &Library, verdicts: &[Verdict]) -> Coverage {
    let clauses_of = |wanted: &dyn Fn(&str) -> bool| -> BTreeSet<&str> {
        let scenarios = library
            .scenarios
            .iter()
            .filter(|loaded| wanted(loaded.value.id().as_str()));
        scenarios
            .flat_map(|loaded| {
                loaded
                    .value
                    .spec
                    .clauses
                    .iter()
                    .map(|clause| clause.as_str())
            })
            .collect()
    };
    let decided: BTreeMap<&str, Status> = verdicts
        .iter()
        .map(|verdict| (verdict.id.as_str(), verdict.status))
        .collect();
    let tested = clauses_of(&|_| true);
    let here = clauses_of(&|id| matches!(decided.get(id), Some(Status::Pass | Status::Fail)));
    let musts = || {
        library
            .spec
            .clauses
            .iter()
            .map(|(_, clause)| clause)
            .filter(|clause| clause.level == Level::Must)
    };
    Coverage {
        must_clauses: musts().count(),
        with_scenario: musts()
            .filter(|clause| tested.contains(clause.id.as_str()))
            .count(),
        exercised_here: musts()
            .filter(|clause| here.contains(clause.id.as_str()))
            .count(),
        untestable: musts().filter(|clause| clause.untestable.is_some()).count(),
    }
}

fn sensitivity_of(
    library: &Library,
    journal: &Journal,
    verdicts: &[Verdict],
    pace: &Pace,
) -> Sensitivity {
    let limits = Limits {
        timeouts: library.spec.timeouts.clone(),
        pace: pace.clone(),
    };
    let mut sum = Sensitivity {
        checks: 0,
        tried: 0,
        killed: 0,
        survivors: Vec::new(),
    };
    for verdict in verdicts
        .iter()
        .filter(|verdict| verdict.status == Status::Pass)
    {
        let loaded = library
            .scenarios
            .iter()
            .find(|loaded| loaded.value.id().as_str() == verdict.id);
        let Some(loaded) = loaded else { continue };
        let matrix = sensitivity(
            &loaded.value,
            &journal.of_scenario(&verdict.id),
            &limits,
            &library.spec.mutants,
        );
        let checks: BTreeSet<&str> = matrix.rows.iter().map(|row| row.check.as_str()).collect();
        sum.checks += checks.len() + matrix.unproven.len();
        sum.tried += matrix.rows.len();
        sum.killed += matrix
            .rows
            .iter()
            .filter(|row| row.outcome == RowOutcome::Killed)
            .count();
        sum.survivors.extend(
            matrix
                .unproven
                .iter()
                .map(|check| format!("{check} names no mutant")),
        );
        sum.survivors.extend(matrix.survivors().map(|row| {
            let how = match &row.outcome {
                RowOutcome::Killed => "killed".to_owned(),
                RowOutcome::Survived(status) => status.to_string(),
                RowOutcome::NoEffect => "nothing to break".to_owned(),
                RowOutcome::Broken(why) => why.clone(),
            };
            format!("{} under {}: {how}", row.check, row.mutant)
        }));
    }
    sum
}

fn cleanup(journal: &Journal) -> CleanupSum {
    let mut sum = CleanupSum::default();
    for entry in &journal.entries {
        // The run's own line sums up; lines of scenarios would count twice.
        if let (None, Event::Cleanup { created, leaked }) = (&entry.scenario, &entry.event) {
            sum.objects_created += created;
            sum.leaked.extend(leaked.iter().cloned());
        }
    }
    sum
}
