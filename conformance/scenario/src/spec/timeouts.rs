//! How long things may take, by class. Scenarios name a class; numbers stand in one table.

use std::{collections::BTreeMap, fmt, time::Duration};

use serde::{Deserialize, Serialize};

use crate::duration;

/// A class of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// One answer of the API server.
    Api,
    /// One answer with admission in the way.
    Admission,
    /// A pod from creation to Ready.
    Pod,
    /// A guest from creation of the VMI to Ready.
    Boot,
    /// A guest's orderly end.
    Shutdown,
    /// An object's disappearance.
    Delete,
    /// Nothing happens any more.
    Settle,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 7] = [
        Self::Api,
        Self::Admission,
        Self::Pod,
        Self::Boot,
        Self::Shutdown,
        Self::Delete,
        Self::Settle,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Api => "api",
            Self::Admission => "admission",
            Self::Pod => "pod",
            Self::Boot => "boot",
            Self::Shutdown => "shutdown",
            Self::Delete => "delete",
            Self::Settle => "settle",
        })
    }
}

/// What is usual and what is too long, on a machine of the reference pace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// Later than this is marked `slow`.
    #[serde(deserialize_with = "duration::deserialize")]
    pub nominal: Duration,
    /// Later than this, times the factor, is a failure.
    #[serde(deserialize_with = "duration::deserialize")]
    pub hard: Duration,
}

/// The table of all classes; none may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawTimeouts")]
pub struct Timeouts {
    classes: BTreeMap<Class, Limit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTimeouts {
    classes: BTreeMap<Class, Limit>,
}

impl TryFrom<RawTimeouts> for Timeouts {
    type Error = String;

    fn try_from(raw: RawTimeouts) -> Result<Self, String> {
        for class in Class::ALL {
            let limit = raw
                .classes
                .get(&class)
                .ok_or_else(|| format!("class {class} is missing"))?;
            if limit.nominal > limit.hard || limit.hard.is_zero() {
                return Err(format!(
                    "class {class}: nominal must not exceed hard, and hard must not be zero"
                ));
            }
        }
        Ok(Self {
            classes: raw.classes,
        })
    }
}

impl Timeouts {
    /// The limits of a class.
    pub fn of(&self, class: Class) -> Limit {
        const NOTHING: Limit = Limit {
            nominal: Duration::ZERO,
            hard: Duration::ZERO,
        };
        self.classes.get(&class).copied().unwrap_or(NOTHING)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::yaml::parse_words;

    #[test]
    fn a_missing_class_is_an_error() {
        let text = "classes: {api: {nominal: 1s, hard: 2s}}";
        let error = parse_words::<Timeouts>(Path::new("t.yaml"), text)
            .unwrap_err()
            .to_string();
        assert!(error.contains("class admission is missing"), "{error}");
    }

    #[test]
    fn a_hard_limit_below_nominal_is_an_error() {
        let row = |class: &Class| format!("  {class}: {{nominal: 3s, hard: 2s}}\n");
        let text = format!(
            "classes:\n{}",
            Class::ALL.iter().map(row).collect::<String>()
        );
        assert!(parse_words::<Timeouts>(Path::new("t.yaml"), &text).is_err());
    }
}
