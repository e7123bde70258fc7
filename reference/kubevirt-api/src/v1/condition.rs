//! The condition shape that VMs, VMIs and the KubeVirt resource share.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `True`, `False` or `Unknown`, as text on the wire.
pub type ConditionStatus = String;

/// One observed aspect of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// When the condition was last looked at; null when never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_probe_time: Option<Time>,
    /// When the status last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// Details for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// One word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `True`, `False` or `Unknown`.
    pub status: ConditionStatus,
    /// Name of the aspect, such as `Ready`.
    #[serde(rename = "type")]
    pub type_: String,
}

impl Condition {
    /// A condition without times; they are set when it is merged into a status.
    #[must_use]
    pub fn new(type_: &str, status: bool, reason: &str, message: &str) -> Self {
        let text = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        Self {
            last_probe_time: None,
            last_transition_time: None,
            message: text(message),
            reason: text(reason),
            status: if status { "True" } else { "False" }.to_owned(),
            type_: type_.to_owned(),
        }
    }

    /// Whether the status is `True`.
    #[must_use]
    pub fn is_true(&self) -> bool {
        self.status == "True"
    }

    /// Whether both say the same, times aside.
    #[must_use]
    pub fn says_same(&self, other: &Self) -> bool {
        self.type_ == other.type_
            && self.status == other.status
            && self.reason == other.reason
            && self.message == other.message
    }
}

/// The condition of that type, if there.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Puts `next` in its place; keeps the old times when nothing but time would change.
/// Returns whether the list changed.
pub fn set(conditions: &mut Vec<Condition>, next: Condition, now: &Time) -> bool {
    let stamped = |mut c: Condition, transition: Time| {
        c.last_transition_time = Some(transition);
        c
    };
    match conditions.iter_mut().find(|c| c.type_ == next.type_) {
        Some(old) if old.says_same(&next) => false,
        Some(old) => {
            let transition = match &old.last_transition_time {
                Some(t) if old.status == next.status => t.clone(),
                _ => now.clone(),
            };
            *old = stamped(next, transition);
            true
        }
        None => {
            conditions.push(stamped(next, now.clone()));
            true
        }
    }
}

/// Takes the condition of that type out; returns whether it was there.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.type_ != type_);
    conditions.len() != before
}
