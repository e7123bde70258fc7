//! What judging one scenario comes to. These types go into reports as they are.

use std::fmt;

use conformance_scenario::model::Level;
use serde::{Deserialize, Serialize};

use crate::timeline::Row;

/// The word for a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every check held on an unbroken history.
    Pass,
    /// A check was refuted.
    Fail,
    /// Claimed, but something it requires is missing.
    Blocked,
    /// Its feature is not claimed.
    NotApplicable,
    /// The operator asked to leave it out.
    Skipped,
    /// The history does not tell.
    Inconclusive,
    /// Our fault, or the API could not be reached.
    Error,
    /// A failure that the baseline expects.
    ExpectedFail,
    /// A pass where the baseline expects a failure.
    UnexpectedPass,
}

/// Whose doing a result is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// The platform under test.
    Product,
    /// The suite.
    Harness,
    /// The cluster or network below both.
    Environment,
}

/// A remark beside the status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    /// Passed after a try.
    Flaky,
    /// Later than nominal, within the limit.
    Slow,
    /// A limit was scaled.
    Scaled,
    /// Objects were left behind.
    Leaked,
}

/// The verdict on one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// Which scenario.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How binding it is.
    pub level: Level,
    /// Its feature.
    pub feature: String,
    /// Digest of the file that was run.
    pub digest: String,
    /// The word.
    pub status: Status,
    /// Whose doing it is, unless it passed.
    pub blame: Option<Blame>,
    /// One line on why, unless it passed.
    pub reason: Option<String>,
    /// Remarks.
    pub marks: Vec<Mark>,
    /// From start to end of recording.
    pub duration_ms: u64,
    /// How often it was tried.
    pub tries: u32,
    /// Steps and assertions, in the order of the file.
    pub checks: Vec<Check>,
}

/// What a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckKind {
    /// A step.
    Step,
    /// An assertion.
    Assertion,
}

/// The word for a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// It held.
    Pass,
    /// It was refuted.
    Fail,
    /// The history does not tell.
    Inconclusive,
    /// Its moment never came, because something before it went wrong.
    NotReached,
    /// It could not be asked.
    Error,
}

/// One step or assertion and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// Full id, such as `VM-LIFE-0001.a1`.
    pub id: String,
    /// What it is.
    pub kind: CheckKind,
    /// Its word.
    pub word: String,
    /// Its clause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
    /// The word for it.
    pub status: CheckStatus,
    /// Whose doing it is, when it could not be told or asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
    /// How much of which deadline it used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineUsed>,
    /// Sequence numbers of the journal that it was judged from: first and last.
    pub journal: [u64; 2],
    /// Why it did not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Explanation>,
}

/// A deadline and how much of it was used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeadlineUsed {
    /// The class, or `fixed`.
    pub class: String,
    /// The factor in the limit.
    pub factor: f64,
    /// Usual.
    pub nominal_ms: u64,
    /// Too long.
    pub limit_ms: u64,
    /// What it took.
    pub used_ms: u64,
}

impl DeadlineUsed {
    /// The part of the limit that was used: 0 to 1.
    pub fn margin_used(&self) -> f64 {
        if self.limit_ms == 0 {
            0.0
        } else {
            to_f64(self.used_ms) / to_f64(self.limit_ms)
        }
    }

    /// Later than nominal.
    pub fn is_slow(&self) -> bool {
        self.used_ms > self.nominal_ms
    }
}

/// Times in milliseconds fit into the exact range of a float.
fn to_f64(millis: u64) -> f64 {
    f64::from(u32::try_from(millis).unwrap_or(u32::MAX))
}

/// Why a check did not hold, for someone who has to find out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// One line.
    pub summary: String,
    /// The object that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Where the last relevant version differs from what was expected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mismatches: Vec<Mismatch>,
    /// The deadline that passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DeadlineUsed>,
    /// The object around that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<Row>,
    /// What to type to run this again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rerun: String,
}

impl Explanation {
    /// With a summary only.
    pub fn new(summary: impl Into<String>) -> Self {
        Self {
            summary: summary.into(),
            ..Self::default()
        }
    }
}

/// One place where an object is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mismatch {
    /// Where.
    pub path: String,
    /// What was expected.
    pub expected: String,
    /// What stands there.
    pub actual: String,
}

impl From<conformance_scenario::matcher::Mismatch> for Mismatch {
    fn from(found: conformance_scenario::matcher::Mismatch) -> Self {
        Self {
            path: found.path,
            expected: found.expected,
            actual: found.actual,
        }
    }
}

impl Verdict {
    /// A check by its full id.
    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    /// Checks that do not hold.
    pub fn not_held(&self) -> impl Iterator<Item = &Check> {
        self.checks
            .iter()
            .filter(|check| check.status != CheckStatus::Pass)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Blocked => "blocked",
            Self::NotApplicable => "not-applicable",
            Self::Skipped => "skipped",
            Self::Inconclusive => "inconclusive",
            Self::Error => "error",
            Self::ExpectedFail => "expected-fail",
            Self::UnexpectedPass => "unexpected-pass",
        })
    }
}

impl fmt::Display for CheckStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
            Self::NotReached => "not reached",
            Self::Error => "error",
        })
    }
}

impl fmt::Display for Blame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Product => "product",
            Self::Harness => "harness",
            Self::Environment => "environment",
        })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flaky => "flaky",
            Self::Slow => "slow",
            Self::Scaled => "scaled",
            Self::Leaked => "leaked",
        })
    }
}
