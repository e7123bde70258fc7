//! What one line of the journal says.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Counts from 0 without a hole.
    pub seq: u64,
    /// Nanoseconds on the harness's monotonic clock since the run began. The only time that verdicts use.
    pub t: u64,
    /// Wall clock, for people.
    pub wall: Timestamp,
    /// The run.
    pub run: String,
    /// The scenario, when the line belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Event {
    /// The run begins.
    #[serde(rename = "run.start")]
    RunStart {
        /// Version of the suite.
        suite: String,
        /// Digest over all scenarios of the suite.
        scenarios_digest: String,
        /// The command line.
        argv: Vec<String>,
        /// Seed of the order.
        seed: u64,
        /// What kind of run this is: `run`, `plan`, `converted`.
        mode: Mode,
        /// Features that the platform claims.
        claims: Vec<String>,
    },
    /// What the suite found before it began, and the pace it measured.
    #[serde(rename = "env")]
    Env {
        /// Factors of the deadline classes.
        pace: Pace,
        /// Versions, nodes, adapter: for readers.
        facts: Value,
    },
    /// A scenario begins.
    #[serde(rename = "scenario.start")]
    ScenarioStart {
        /// Digest of its file.
        digest: String,
        /// The namespace that was made for it.
        namespace: Option<String>,
    },
    /// A step begins or ends.
    #[serde(rename = "step")]
    Step {
        /// Which step.
        step: String,
        /// Which end of it.
        phase: Phase,
        /// How it went, as the engine saw it; only at the end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// For readers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// A request is sent.
    #[serde(rename = "request")]
    Request {
        /// The step it belongs to; a request of the engine's own has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// Joins it with its response.
        id: u64,
        /// HTTP method.
        method: String,
        /// Path and query.
        path: String,
        /// Body.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        body: Value,
    },
    /// A response arrives, or none does.
    #[serde(rename = "response")]
    Response {
        /// The step it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<String>,
        /// Joins it with its request.
        id: u64,
        /// HTTP code; 0 when no answer came.
        code: u16,
        /// Body: an object or a Status.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        body: Value,
        /// The transport's error when no answer came.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A watch is open: from here on every version of these objects is seen.
    #[serde(rename = "watch")]
    Watch {
        /// Kind.
        kind: String,
        /// Namespace; all of them, or a kind without, when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Label selector of the watch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
        /// Where it started.
        resource_version: String,
    },
    /// One version of one object.
    #[serde(rename = "observe")]
    Observe {
        /// What the watch said.
        change: Change,
        /// Kind, which list items do not carry.
        kind: String,
        /// The whole object.
        object: Value,
    },
    /// Continuity was lost: versions of this kind between the two moments may have been missed.
    #[serde(rename = "gap")]
    Gap {
        /// Kind.
        kind: String,
        /// Namespace of the watch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<String>,
        /// Nanoseconds, as `t`.
        from: u64,
        /// Nanoseconds, as `t`.
        to: u64,
        /// Why.
        reason: String,
    },
    /// Something on a serial console.
    #[serde(rename = "console")]
    Console {
        /// The VMI.
        vmi: String,
        /// The client's name.
        client: String,
        /// What happened.
        what: ConsoleWhat,
        /// Text, or the reason of an end.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// The engine tries something again.
    #[serde(rename = "try")]
    Try {
        /// The step.
        step: String,
        /// Which try, from 1.
        number: u32,
        /// Why the one before was not enough.
        reason: String,
    },
    /// What the judge said while the run went on; for readers, never judged again.
    #[serde(rename = "assert")]
    Assert {
        /// Which assertion.
        assertion: String,
        /// What it said.
        status: String,
    },
    /// Recording of a scenario ends.
    #[serde(rename = "scenario.end")]
    ScenarioEnd {
        /// How.
        outcome: ScenarioOutcome,
        /// Why, when it is not `completed`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// What was kept as evidence.
    #[serde(rename = "evidence")]
    Evidence {
        /// What it is: `objects`, `events`, `podLogs/<pod>`, …
        name: String,
        /// The thing itself.
        content: Value,
    },
    /// What was deleted after a scenario or a run.
    #[serde(rename = "cleanup")]
    Cleanup {
        /// Objects that were made.
        created: u64,
        /// Objects that are left, with what holds them.
        leaked: Vec<String>,
    },
    /// The run ends. Without this line it was interrupted.
    #[serde(rename = "run.end")]
    RunEnd {
        /// How many scenarios were started.
        scenarios: u64,
    },
}

/// What kind of history this is. Only `run` can carry a verdict about a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A run against a cluster.
    Run,
    /// Nothing was done.
    Plan,
    /// Made from watch files that something else recorded.
    Converted,
}

/// Which end of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Nothing of it has been done.
    Begin,
    /// All of it has been done.
    End,
}

/// How a step went, as the engine saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As wanted.
    Ok,
    /// Not as wanted.
    Unexpected,
    /// The deadline passed.
    Timeout,
    /// The engine could not do it: our fault or the environment's.
    Error,
}

/// How recording of a scenario ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScenarioOutcome {
    /// All steps were done, or one went wrong and the rest was left.
    Completed,
    /// The engine gave up.
    Aborted,
    /// The operator asked to leave it out.
    Skipped,
    /// Something it requires is missing.
    Blocked,
    /// Its feature is not claimed.
    NotApplicable,
}

/// What a watch says about an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Change {
    /// It is new to the watch.
    Added,
    /// It is different.
    Modified,
    /// It is gone.
    Deleted,
    /// Only the resource version moved on.
    Bookmark,
}

/// What happened on a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConsoleWhat {
    /// The session is open.
    Opened,
    /// We sent this.
    Sent,
    /// The guest sent this.
    Received,
    /// The other side closed the session.
    Closed,
    /// The session could not be opened, or broke.
    Failed,
}

/// Factors of the deadline classes, measured before the run. In the journal, so that judging again uses the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// Factor by class; 1 where none is given.
    pub scale: BTreeMap<String, f64>,
    /// No factor is larger.
    pub max: f64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            scale: BTreeMap::new(),
            max: 20.0,
        }
    }
}

impl Pace {
    /// The same factor for every class.
    pub fn uniform(factor: f64, classes: impl IntoIterator<Item = String>) -> Self {
        Self {
            scale: classes.into_iter().map(|class| (class, factor)).collect(),
            ..Self::default()
        }
    }

    /// The factor of a class: at least 1, at most `max`.
    pub fn factor(&self, class: &str) -> f64 {
        let measured = self.scale.get(class).copied().unwrap_or(1.0);
        if measured.is_finite() {
            measured.max(1.0).min(self.max.max(1.0))
        } else {
            1.0
        }
    }
}

impl Entry {
    /// Milliseconds since the run began, for people.
    pub fn millis(&self) -> u64 {
        self.t / 1_000_000
    }
}
