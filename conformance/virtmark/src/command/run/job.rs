//! What becomes of each selected scenario: played, or left out for a reason that the report will show.

use std::sync::Arc;

use conformance_engine::{Facts, Job};
use conformance_journal::entry::ScenarioOutcome;
use conformance_report::ExitCode;
use conformance_scenario::{Scenario, library::Loaded, spec::Platform};

use crate::problem::Problem;

/// One job per selected scenario.
pub(super) fn jobs(
    selected: &[&Loaded<Scenario>],
    facts: &Facts,
    platform: &Platform,
    skips: &[(String, String)],
) -> Result<Vec<Job>, Problem> {
    for (id, _) in skips {
        if !selected
            .iter()
            .any(|loaded| loaded.value.id().as_str() == id)
        {
            let text = format!("--skip names {id}, which is not selected");
            return Err(Problem::text(ExitCode::UnknownName, text));
        }
    }
    let job = |loaded: &&Loaded<Scenario>| Job {
        left_out: left_out(&loaded.value, facts, platform, skips),
        loaded: Arc::new((*loaded).clone()),
    };
    Ok(selected.iter().map(job).collect())
}

/// The operator's word first, then the platform's, then what is missing.
fn left_out(
    scenario: &Scenario,
    facts: &Facts,
    platform: &Platform,
    skips: &[(String, String)],
) -> Option<(ScenarioOutcome, String)> {
    if let Some((_, reason)) = skips.iter().find(|(id, _)| id == scenario.id().as_str()) {
        return Some((ScenarioOutcome::Skipped, reason.clone()));
    }
    let feature = &scenario.spec.feature;
    if !facts.claims.contains(feature) {
        return Some((
            ScenarioOutcome::NotApplicable,
            format!("{feature} is not claimed"),
        ));
    }
    let missing = facts.missing(&scenario.spec.requires, platform)?;
    Some((ScenarioOutcome::Blocked, missing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cli::SuiteArgs, suite};

    #[test]
    fn skipped_before_unclaimed_before_blocked() {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        let platform = suite::platform(&library, "reference").unwrap();
        let node = library
            .scenarios
            .iter()
            .find(|loaded| loaded.value.id().as_str() == "VM-NODE-0001")
            .unwrap();
        let mut facts = Facts::default();
        let outcome = |facts: &Facts, skips: &[(String, String)]| {
            jobs(&[node], facts, &platform, skips)
                .unwrap()
                .remove(0)
                .left_out
                .map(|(outcome, _)| outcome)
        };
        let skips = [("VM-NODE-0001".to_owned(), "known".to_owned())];
        assert_eq!(outcome(&facts, &skips), Some(ScenarioOutcome::Skipped));
        assert_eq!(outcome(&facts, &[]), Some(ScenarioOutcome::NotApplicable));
        facts.claims = platform.claims.clone();
        assert_eq!(outcome(&facts, &[]), Some(ScenarioOutcome::Blocked));
        facts.nodes.push(conformance_engine::preflight::Node {
            name: "n".into(),
            schedulable: true,
            kvm: true,
        });
        assert_eq!(outcome(&facts, &[]), None);
    }

    #[test]
    fn a_skip_that_names_nothing_is_an_error() {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        let platform = suite::platform(&library, "reference").unwrap();
        let skips = [("VM-LIFE-0001".to_owned(), "known".to_owned())];
        assert!(jobs(&[], &Facts::default(), &platform, &skips).is_err());
    }
}
