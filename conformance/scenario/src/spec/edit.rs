//! Edits of a recorded history: the cheapest way to break something and see who notices.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{
    duration,
    ids::LocalId,
    matcher::Matcher,
    model::object::{ObjectRef, Point},
    path::Path,
};

/// One edit. Names of objects may be left out: one mutant serves many scenarios.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Edit {
    /// Versions that were never seen.
    Drop(Target),
    /// Nothing is seen any more from the first such version on, that version included.
    Freeze(Target),
    /// Fields of versions read differently.
    Rewrite(Rewrite),
    /// The first version that matches one thing and the first that matches another change places.
    Swap(Swap),
    /// A version is shown for a moment right after another, then the other comes back.
    Flash(Flash),
    /// A version comes again later, after another.
    Replay(Replay),
    /// A second object, like the first but with another name and uid, lives on beside it.
    Twin(Target),
    /// The object is deleted right after such a version, and never comes back.
    Delete(Target),
    /// An object that was never there appears, and stays.
    Appear(Appear),
    /// The answer to a step is another one.
    Respond(Respond),
    /// What the guest said is another thing.
    Console(ConsoleEdit),
}

/// Versions of objects.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Target {
    /// Which objects.
    pub object: ObjectRef,
    /// Which versions; all of them without it.
    #[serde(default, rename = "match")]
    pub matching: Option<Matcher>,
    /// Only from this moment on.
    #[serde(default)]
    pub after: Option<Point>,
    /// Only when the watch said so.
    #[serde(default)]
    pub change: Option<Change>,
}

/// What a watch says about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Change {
    /// It is new.
    Added,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
}

/// Fields of versions read differently.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rewrite {
    /// Which versions.
    pub target: Target,
    /// Only the first of them, or the last.
    #[serde(default)]
    pub only: Option<Which>,
    /// New values by path.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Paths taken away.
    #[serde(default)]
    pub unset: Vec<Path>,
}

/// One of many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Which {
    /// The first.
    First,
    /// The last.
    Last,
}

/// Two versions change places.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Swap {
    /// Which object.
    pub object: ObjectRef,
    /// The earlier version.
    pub first: Matcher,
    /// The later version.
    pub second: Matcher,
    /// Only from this moment on.
    #[serde(default)]
    pub after: Option<Point>,
}

/// A version is shown for a moment.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Flash {
    /// After which version; the first that is found.
    pub target: Target,
    /// What is different in it.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// What is missing in it.
    #[serde(default)]
    pub unset: Vec<Path>,
    /// For how long.
    #[serde(default = "default_flash", deserialize_with = "duration::deserialize")]
    pub lasting: Duration,
}

fn default_flash() -> Duration {
    Duration::from_millis(10)
}

/// A version comes again.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Replay {
    /// Which object.
    pub object: ObjectRef,
    /// The version that comes again.
    #[serde(rename = "match")]
    pub matching: Matcher,
    /// After the last version that matches this.
    pub behind: Matcher,
}

/// An object that was never there appears.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Appear {
    /// The object; it is put into the scenario's namespace when it names none.
    pub object: Value,
    /// When; right before the end of recording without it.
    #[serde(default)]
    pub after: Option<Point>,
}

/// The answer to a step is another one.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Respond {
    /// Which step; every step whose answer is checked without it.
    #[serde(default)]
    pub step: Option<LocalId>,
    /// Another code.
    #[serde(default)]
    pub code: Option<u16>,
    /// Another body.
    #[serde(default)]
    pub body: Option<Value>,
    /// New values in the body by path.
    #[serde(default)]
    pub set: Map<String, Value>,
    /// Paths taken out of the body.
    #[serde(default)]
    pub unset: Vec<Path>,
}

/// What the guest said is another thing.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ConsoleEdit {
    /// Only this client's session.
    #[serde(default)]
    pub client: Option<String>,
    /// It said nothing.
    #[serde(default)]
    pub silent: bool,
    /// The session was never closed from the other side.
    #[serde(default)]
    pub never_closed: bool,
}
