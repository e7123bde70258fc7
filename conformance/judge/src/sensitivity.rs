//! Proves that a green result could have been red: every check must be killed by each mutant it names.

use std::collections::BTreeMap;

use conformance_journal::Entry;
use conformance_scenario::{MutantId, Scenario, spec::Mutant};
use serde::{Deserialize, Serialize};

use crate::{
    judge::judge,
    limits::Limits,
    mutate::mutate,
    verdict::{CheckStatus, Status},
};

/// What came of every pair of check and mutant of one scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Matrix {
    /// Which scenario.
    pub scenario: String,
    /// Whether the unbroken history passes; without that the rest means nothing.
    pub baseline: Status,
    /// Pairs, in the order of the file.
    pub rows: Vec<Row>,
    /// Checks that name no mutant.
    pub unproven: Vec<String>,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Full id of the check.
    pub check: String,
    /// The mutant.
    pub mutant: String,
    /// What came of it.
    pub outcome: RowOutcome,
}

/// What came of one pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowOutcome {
    /// The check failed, as it must.
    Killed,
    /// The check did not fail.
    Survived(CheckStatus),
    /// The mutant found nothing to break in this history.
    NoEffect,
    /// The mutant is not known, or cannot be applied.
    Broken(String),
}

impl Matrix {
    /// Pairs that prove nothing.
    pub fn survivors(&self) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(|row| row.outcome != RowOutcome::Killed)
    }

    /// Whether every check of a passing scenario was killed by each of its mutants.
    pub fn holds(&self) -> bool {
        self.baseline == Status::Pass
            && self.unproven.is_empty()
            && self.survivors().next().is_none()
    }
}

/// Breaks the history in every way that the scenario names and looks which checks notice.
pub fn sensitivity(
    scenario: &Scenario,
    entries: &[Entry],
    limits: &Limits,
    mutants: &[Mutant],
) -> Matrix {
    let known: BTreeMap<&MutantId, &Mutant> =
        mutants.iter().map(|mutant| (&mutant.id, mutant)).collect();
    let steps = scenario
        .spec
        .steps
        .iter()
        .filter(|step| step.is_check())
        .map(|step| (&step.id, &step.mutants));
    let assertions = scenario
        .spec
        .assertions
        .iter()
        .map(|assertion| (&assertion.id, &assertion.mutants));
    let mut rows = Vec::new();
    let mut unproven = Vec::new();
    for (id, named) in steps.chain(assertions) {
        let check = scenario.id().join(id);
        if named.is_empty() {
            unproven.push(check.clone());
        }
        for mutant in named {
            let outcome = match known.get(mutant) {
                Some(mutant) => try_one(scenario, entries, limits, mutant, &check),
                None => RowOutcome::Broken("no such mutant".to_owned()),
            };
            rows.push(Row {
                check: check.clone(),
                mutant: mutant.to_string(),
                outcome,
            });
        }
    }
    let baseline = judge(scenario, entries, limits).status;
    Matrix {
        scenario: scenario.id().to_string(),
        baseline,
        rows,
        unproven,
    }
}

fn try_one(
    scenario: &Scenario,
    entries: &[Entry],
    limits: &Limits,
    mutant: &Mutant,
    check: &str,
) -> RowOutcome {
    match mutate(scenario, entries, mutant) {
        Ok(Some(broken)) => {
            let verdict = judge(scenario, &broken, limits);
            let status = verdict
                .check(check)
                .map_or(CheckStatus::NotReached, |check| check.status);
            if status == CheckStatus::Fail {
                RowOutcome::Killed
            } else {
                RowOutcome::Survived(status)
            }
        }
        Ok(None) => RowOutcome::NoEffect,
        Err(error) => RowOutcome::Broken(error.to_string()),
    }
}
