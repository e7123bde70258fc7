//! Identifiers that never change. Each kind has its own type, so that a clause cannot stand where a
//! scenario is meant, and its own rule, checked when a file is read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The areas that scenario and clause ids may start with.
pub const AREAS: [&str; 12] = [
    "VM-LIFE", "VM-SPEC", "VM-ADM", "VM-STAT", "VM-MIG", "VM-STOR", "VM-NET", "VM-NODE", "VM-SUB",
    "VM-UPG", "VM-PERF", "VM-INST",
];

/// An identifier that does not follow the rule of its kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a {kind} id: expected {rule}")]
pub struct IdError {
    text: String,
    kind: &'static str,
    rule: &'static str,
}

macro_rules! id_type {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The identifier as it is written.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(IdError { text, kind: $kind, rule: $rule }) }
            }
        }

        impl std::str::FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Self::try_from(text.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id_type!(
    /// A scenario, such as `VM-LIFE-0007`.
    ScenarioId, "scenario", "AREA-NNNN with a known area", |text| split_area(text).is_some_and(|rest| is_digits(rest, 4))
);
id_type!(
    /// A clause of the specification, such as `VM-LIFE-R012`.
    ClauseId, "clause", "AREA-RNNN with a known area",
    |text| split_area(text).and_then(|rest| rest.strip_prefix('R')).is_some_and(|rest| is_digits(rest, 3))
);
id_type!(
    /// A mutant, such as `M-014`.
    MutantId, "mutant", "M-NNN", |text| text.strip_prefix("M-").is_some_and(|rest| is_digits(rest, 3))
);
id_type!(
    /// A step or an assertion inside one scenario, such as `s3`, `a1` or `control`.
    LocalId, "step or assertion", "a lower-case word that is not start or end",
    |text| {
        text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !["start", "end"].contains(&text)
    }
);

impl ScenarioId {
    /// The part before the number: `VM-LIFE` of `VM-LIFE-0007`.
    pub fn area(&self) -> &str {
        self.0.rsplit_once('-').map_or("", |(area, _)| area)
    }

    /// The full name of a step or an assertion: `VM-LIFE-0007.a1`.
    pub fn join(&self, local: &LocalId) -> String {
        format!("{}.{}", self.0, local.0)
    }
}

fn split_area(text: &str) -> Option<&str> {
    let (area, rest) = text.rsplit_once('-')?;
    AREAS.contains(&area).then_some(rest)
}

fn is_digits(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("VM-LIFE-0007", true)]
    #[case("VM-LIFE-007", false)]
    #[case("VM-NOPE-0007", false)]
    #[case("vm-life-0007", false)]
    #[case("", false)]
    fn scenario_ids_follow_the_rule(#[case] text: &str, #[case] good: bool) {
        assert_eq!(text.parse::<ScenarioId>().is_ok(), good);
    }

    #[rstest]
    #[case("VM-LIFE-R012", true)]
    #[case("VM-LIFE-0012", false)]
    fn clause_ids_follow_the_rule(#[case] text: &str, #[case] good: bool) {
        assert_eq!(text.parse::<ClauseId>().is_ok(), good);
    }

    #[rstest]
    #[case("s1", true)]
    #[case("control", true)]
    #[case("end", false)]
    #[case("S1", false)]
    #[case("1s", false)]
    fn local_ids_leave_the_reserved_points_alone(#[case] text: &str, #[case] good: bool) {
        assert_eq!(text.parse::<LocalId>().is_ok(), good);
    }
}
