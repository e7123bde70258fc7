//! One scenario, as a tester writes it. The step words are in `step`, the assertion words in `assertion`,
//! what both share in `object`.

pub mod assertion;
pub mod object;
pub mod step;

use serde::Deserialize;

pub use assertion::{Assertion, Word};
pub use object::{Deadline, ObjectRef, Point};
pub use step::{Action, Expectation, Rejection, Source, Step};

use crate::{
    ids::{ClauseId, LocalId, ScenarioId},
    selector::Selector,
};

/// One test, as data.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// Always `virtmark.dev/v1`.
    pub api_version: ApiVersion,
    /// Always `Scenario`.
    pub kind: ScenarioKind,
    /// Who it is.
    pub metadata: Metadata,
    /// What it does and expects.
    pub spec: Spec,
}

/// The version of the file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ApiVersion {
    /// The only one so far.
    #[serde(rename = "virtmark.dev/v1")]
    V1,
}

/// The kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum ScenarioKind {
    /// A scenario.
    Scenario,
}

/// Names and ownership of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Metadata {
    /// Never changes, never reused.
    pub id: ScenarioId,
    /// May change.
    pub title: String,
    /// The suite version that brought it.
    pub since: String,
    /// Who to ask.
    #[serde(default)]
    pub owners: Vec<String>,
}

/// The body of a scenario.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Spec {
    /// A few sentences for the reader, when the title is not enough.
    #[serde(default)]
    pub description: Option<String>,
    /// The clauses tested here; each needs an assertion or a negative step.
    pub clauses: Vec<ClauseId>,
    /// How binding they are.
    pub level: Level,
    /// The feature a platform claims.
    pub feature: String,
    /// Free words for filters.
    #[serde(default)]
    pub tags: Vec<String>,
    /// What must not run beside it.
    #[serde(default)]
    pub exclusive: Exclusive,
    /// What must be there; missing and claimed means blocked.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// What is watched from before the first step.
    #[serde(default)]
    pub record: Vec<Record>,
    /// A manifest that several steps start from with `base: true`.
    #[serde(default)]
    pub base: Option<Source>,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What must hold of the history.
    #[serde(default)]
    pub assertions: Vec<Assertion>,
    /// What is kept when it fails.
    #[serde(default)]
    pub evidence: Evidence,
}

/// How binding a clause or scenario is (RFC 2119).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, serde::Serialize,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Level {
    /// A failure denies conformance.
    Must,
    /// A failure is listed as a deviation.
    Should,
    /// For information.
    May,
}

/// What a scenario keeps others from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exclusive {
    /// Runs beside anything.
    #[default]
    None,
    /// Needs a node for itself; runs alone for now.
    Node,
    /// Changes the cluster; runs alone.
    Cluster,
}

/// Something a scenario cannot do without.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Requirement {
    /// An image of the platform's image map, by name.
    Image(String),
    /// At least so many schedulable nodes.
    Nodes(u32),
    /// `kvm`: a node that offers the device; `emulation`: the platform may be switched to emulation.
    Virtualization(Virtualization),
}

/// How guests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Virtualization {
    /// Hardware.
    Kvm,
    /// Software.
    Emulation,
}

/// One raw watch, or one console, kept in the journal from before the first step.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Record {
    /// The kind to watch.
    pub kind: String,
    /// Only this object.
    #[serde(default)]
    pub name: Option<String>,
    /// Only objects with these labels.
    #[serde(default)]
    pub selector: Option<Selector>,
    /// A namespace other than the scenario's own.
    #[serde(default)]
    pub namespace: Option<String>,
}

/// What is collected before clean-up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Evidence {
    /// Kept when the scenario does not pass.
    pub on_failure: Vec<EvidenceKind>,
}

impl Default for Evidence {
    fn default() -> Self {
        Self {
            on_failure: vec![
                EvidenceKind::Objects,
                EvidenceKind::Events,
                EvidenceKind::PodLogs,
                EvidenceKind::Console,
            ],
        }
    }
}

/// One sort of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum EvidenceKind {
    /// Objects of the namespace.
    Objects,
    /// Event objects.
    Events,
    /// Logs of pods.
    PodLogs,
    /// The guest's serial lines.
    Console,
    /// Conditions of the nodes involved.
    NodeConditions,
}

impl Scenario {
    /// Its id.
    pub fn id(&self) -> &ScenarioId {
        &self.metadata.id
    }

    /// A step by its id.
    pub fn step(&self, id: &LocalId) -> Option<&Step> {
        self.spec.steps.iter().find(|step| step.id == *id)
    }

    /// An assertion by its id.
    pub fn assertion(&self, id: &LocalId) -> Option<&Assertion> {
        self.spec
            .assertions
            .iter()
            .find(|assertion| assertion.id == *id)
    }
}
