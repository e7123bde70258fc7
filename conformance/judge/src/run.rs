//! Judges a whole run.

use conformance_journal::{Ending, Event, Journal, Pace, entry::Mode};
use conformance_scenario::{Library, Scenario, spec::Timeouts};

use crate::{
    judge::judge,
    limits::Limits,
    verdict::{Blame, Status, Verdict},
};

/// Every verdict of a run and what is known about the run itself.
#[derive(Debug, Clone, PartialEq)]
pub struct RunVerdicts {
    /// The run's name.
    pub run: String,
    /// What kind of history it is.
    pub mode: Mode,
    /// It has no end: nobody may call it a success.
    pub interrupted: bool,
    /// What the platform claims.
    pub claims: Vec<String>,
    /// In order of ids.
    pub verdicts: Vec<Verdict>,
    /// Scenarios that were run with another text than the one at hand, or are not at hand.
    pub foreign: Vec<String>,
}

/// Judges every scenario that the journal names, with the pace that the journal records.
pub fn judge_run(library: &Library, journal: &Journal) -> RunVerdicts {
    let pace = journal.entries.iter().find_map(|entry| match &entry.event {
        Event::Env { pace, .. } => Some(pace.clone()),
        _ => None,
    });
    let limits = Limits {
        timeouts: library.spec.timeouts.clone(),
        pace: pace.unwrap_or_default(),
    };
    let (mode, claims) = journal
        .entries
        .iter()
        .find_map(|entry| match &entry.event {
            Event::RunStart { mode, claims, .. } => Some((*mode, claims.clone())),
            _ => None,
        })
        .unwrap_or((Mode::Plan, Vec::new()));
    let mut started: Vec<(&str, &str)> = Vec::new();
    for entry in &journal.entries {
        if let (Some(id), Event::ScenarioStart { digest, .. }) = (&entry.scenario, &entry.event)
            && !started.iter().any(|(known, _)| known == id)
        {
            started.push((id, digest));
        }
    }
    started.sort_unstable();
    let mut foreign = Vec::new();
    let mut verdicts = Vec::new();
    for (id, digest) in started {
        let loaded = library
            .scenarios
            .iter()
            .find(|loaded| loaded.value.id().as_str() == id);
        let Some(loaded) = loaded.filter(|loaded| loaded.digest == digest) else {
            foreign.push(id.to_owned());
            continue;
        };
        verdicts.push(judge(&loaded.value, &journal.of_scenario(id), &limits));
    }
    let run = journal
        .entries
        .first()
        .map_or_else(String::new, |entry| entry.run.clone());
    RunVerdicts {
        run,
        mode,
        interrupted: journal.ending == Ending::Interrupted,
        claims,
        verdicts,
        foreign,
    }
}

/// A verdict for a scenario that was never started, such as one that a filter or a claim left out.
pub fn unstarted(scenario: &Scenario, status: Status, reason: impl Into<String>) -> Verdict {
    Verdict {
        id: scenario.id().to_string(),
        title: scenario.metadata.title.clone(),
        level: scenario.spec.level,
        feature: scenario.spec.feature.clone(),
        digest: String::new(),
        status,
        blame: (status == Status::Blocked).then_some(Blame::Environment),
        reason: Some(reason.into()),
        marks: Vec::new(),
        duration_ms: 0,
        tries: 0,
        checks: Vec::new(),
    }
}

impl Limits {
    /// The table as it is, nothing scaled.
    pub fn unscaled(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            pace: Pace::default(),
        }
    }
}
