//! The data files beside the scenarios: what is required, who may claim what, how long things take,
//! how things can be broken, and what a platform calls its parts.

pub mod edit;
pub mod timeouts;

use std::collections::BTreeMap;

use serde::Deserialize;

pub use edit::Edit;
pub use timeouts::{Class, Limit, Timeouts};

use crate::{
    ids::{ClauseId, MutantId},
    model::Level,
};

/// One clause of the specification, in our own words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Clause {
    /// Never changes.
    pub id: ClauseId,
    /// How binding it is.
    pub level: Level,
    /// What must hold.
    pub text: String,
    /// The suite version that brought it.
    pub since: String,
    /// The feature it belongs to.
    pub feature: String,
    /// Why no scenario can test it, when none can.
    #[serde(default)]
    pub untestable: Option<String>,
}

/// A file of clauses.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Clauses {
    /// The clauses.
    pub clauses: Vec<Clause>,
}

/// Something a platform can claim.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Feature {
    /// Its name, as in scenarios and claims.
    pub name: String,
    /// Whether every platform must have it.
    pub level: FeatureLevel,
    /// The suite version that brought it.
    pub since: String,
    /// One line for readers.
    pub about: String,
}

/// Whether every platform must have a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FeatureLevel {
    /// Everyone.
    Core,
    /// Those who claim it.
    Extended,
    /// Not scored yet.
    Experimental,
}

/// The file of features.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// The features.
    pub features: Vec<Feature>,
}

/// A named set of features that is claimed together.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// One line for readers.
    pub about: String,
    /// Required of everyone who claims the profile.
    pub features: Vec<String>,
    /// May be claimed beside.
    #[serde(default)]
    pub optional: Vec<String>,
}

/// One way to break things.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Mutant {
    /// Never changes.
    pub id: MutantId,
    /// What it breaks, for readers.
    pub breaks: String,
    /// Edits of a recorded history, applied in this order.
    pub edits: Vec<Edit>,
    /// A switch of the reference that breaks the same thing in a live system.
    #[serde(default)]
    pub fault: Option<String>,
}

/// The file of mutants.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutants {
    /// The mutants.
    pub mutants: Vec<Mutant>,
}

/// What a platform calls its parts: the suite itself knows only the wire format.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Platform {
    /// The name for `--platform`.
    pub name: String,
    /// One line for readers.
    pub about: String,
    /// Image names of scenarios to references of this platform.
    pub images: BTreeMap<String, String>,
    /// The object whose status tells version and features.
    pub discovery: Discovery,
    /// Where kubeconfigs are usually found, for messages.
    #[serde(default)]
    pub kubeconfig_hints: Vec<String>,
    /// Features that this platform claims when its status says nothing.
    #[serde(default)]
    pub claims: Vec<String>,
    /// How the machine process of a VMI is made to die.
    #[serde(default)]
    pub kill_machine: Option<KillRecipe>,
}

/// The object whose status tells version and features.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Discovery {
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// How the machine process of a VMI is made to die.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct KillRecipe {
    /// Names of the processes that are the machine, in the order they are tried.
    pub processes: Vec<String>,
}
