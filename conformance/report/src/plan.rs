//! A plan: what a run would do. Its own kind of document, which no verifier takes for a report.

use conformance_scenario::{Library, library::Loaded, model::Scenario};
use serde::{Deserialize, Serialize};

/// What a run would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Plan {
    /// `virtmark.dev/v1`
    pub api_version: String,
    /// `Plan`
    pub kind: PlanKind,
    /// Digest over all scenarios of the suite.
    pub scenarios_digest: String,
    /// In the order of ids.
    pub rows: Vec<PlanRow>,
}

/// The kind of document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanKind {
    /// This.
    Plan,
}

/// One scenario that would be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRow {
    /// Which.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its feature.
    pub feature: String,
    /// Its digest.
    pub digest: String,
    /// Whether it runs alone.
    pub alone: bool,
    /// Always `planned`: nothing was done, so nothing passed.
    pub status: PlanStatus,
}

/// The only thing that can be said of a scenario in a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PlanStatus {
    /// It would be run.
    Planned,
}

/// Plans the selected scenarios.
pub fn plan(library: &Library, selected: &[&Loaded<Scenario>]) -> Plan {
    let row = |loaded: &&Loaded<Scenario>| PlanRow {
        id: loaded.value.id().to_string(),
        title: loaded.value.metadata.title.clone(),
        feature: loaded.value.spec.feature.clone(),
        digest: loaded.digest.clone(),
        alone: loaded.value.spec.exclusive != conformance_scenario::model::Exclusive::None,
        status: PlanStatus::Planned,
    };
    Plan {
        api_version: "virtmark.dev/v1".to_owned(),
        kind: PlanKind::Plan,
        scenarios_digest: library.digest(),
        rows: selected.iter().map(row).collect(),
    }
}
