//! The assertion words. Each is a question about the recorded history between two moments.

use serde::Deserialize;
use serde_json::Value;

use crate::{
    ids::{ClauseId, LocalId, MutantId},
    matcher::Matcher,
    model::object::{Deadline, ObjectRef, Point},
    path::Path,
};

/// One thing that must hold of the history.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "RawAssertion")]
pub struct Assertion {
    /// Its name in the scenario.
    pub id: LocalId,
    /// The clause it tests.
    pub clause: ClauseId,
    /// From when.
    pub from: Point,
    /// Until when.
    pub to: Point,
    /// What must hold.
    pub word: Word,
    /// Mutants that must turn it red.
    pub mutants: Vec<MutantId>,
}

/// The assertion words.
#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    /// Some version matches before the deadline.
    Eventually {
        /// Which object.
        state: State,
        /// A version that makes waiting pointless.
        fails_early: Option<Matcher>,
        /// How long.
        within: Deadline,
    },
    /// Every version in the window matches.
    Always {
        /// Which object, and how it must be.
        state: State,
        /// How long; to the end of the window without it.
        hold: Option<Deadline>,
    },
    /// No version in the window matches.
    Never {
        /// Which object, and how it must not be.
        state: State,
    },
    /// Values of a field follow an order.
    Sequence {
        /// The order.
        sequence: Sequence,
        /// How long until all required values are seen; to the end of the window without it.
        within: Option<Deadline>,
    },
    /// A field changes, or a state is entered, so many times.
    Count {
        /// What is counted.
        count: Count,
        /// How often it may happen.
        times: Times,
    },
    /// A field gets a value other than the one it had at the start of the window.
    Changes {
        /// Which field.
        field: Field,
        /// How long.
        within: Deadline,
    },
    /// A field keeps its value and the object stays.
    Unchanged {
        /// Which field.
        field: Field,
    },
    /// The object of the start of the window is deleted.
    Gone {
        /// Which object.
        object: ObjectRef,
        /// How long.
        within: Deadline,
    },
    /// Nothing changes for a while.
    Settles {
        /// Which object.
        object: ObjectRef,
        /// How long it must be quiet.
        quiet: std::time::Duration,
        /// How long to wait for that.
        within: Deadline,
    },
    /// At no moment are there more than n such objects.
    AtMost {
        /// How many.
        n: usize,
        /// Which objects.
        objects: ObjectRef,
        /// Only those in this state.
        matching: Option<Matcher>,
    },
}

/// An object and how it is.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct State {
    /// Which object.
    pub object: ObjectRef,
    /// How it is; without it, existence alone counts.
    #[serde(default, rename = "match")]
    pub matching: Option<Matcher>,
}

/// Values of a field in order.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Sequence {
    /// Which object.
    pub object: ObjectRef,
    /// Which field.
    pub path: Path,
    /// The order of its values.
    pub order: Vec<Value>,
    /// Values that need not be seen.
    #[serde(default)]
    pub skippable: Vec<Value>,
    /// Values that must not be seen.
    #[serde(default)]
    pub never: Vec<Value>,
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Field {
    /// Which object.
    pub object: ObjectRef,
    /// Which field.
    pub path: Path,
}

/// Something that can be counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Count {
    /// Which object.
    pub object: ObjectRef,
    /// What counts.
    pub what: Counted,
}

/// What counts.
#[derive(Debug, Clone, PartialEq)]
pub enum Counted {
    /// Each change of this field's value.
    Changes(Path),
    /// Each time the object comes into this state.
    Entries(Matcher),
}

/// How often something may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// Never or once.
    AtMostOnce,
    /// So many times.
    Exactly(usize),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawAssertion {
    id: LocalId,
    clause: ClauseId,
    after: Option<Point>,
    between: Option<[Point; 2]>,
    eventually: Option<RawEventually>,
    always: Option<State>,
    never: Option<State>,
    sequence: Option<Sequence>,
    at_most_once: Option<RawCount>,
    exactly: Option<RawExactly>,
    changes: Option<Field>,
    unchanged: Option<Field>,
    gone: Option<RawGone>,
    settles: Option<RawSettles>,
    at_most: Option<RawAtMost>,
    within: Option<Deadline>,
    #[serde(rename = "for")]
    hold: Option<Deadline>,
    #[serde(default)]
    mutants: Vec<MutantId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawEventually {
    object: ObjectRef,
    #[serde(default, rename = "match")]
    matching: Option<Matcher>,
    #[serde(default)]
    fails_early: Option<Matcher>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawCount {
    object: ObjectRef,
    path: Option<Path>,
    #[serde(rename = "match")]
    matching: Option<Matcher>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawExactly {
    n: usize,
    object: ObjectRef,
    path: Option<Path>,
    #[serde(rename = "match")]
    matching: Option<Matcher>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGone {
    object: ObjectRef,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSettles {
    object: ObjectRef,
    #[serde(deserialize_with = "crate::duration::deserialize")]
    quiet: std::time::Duration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAtMost {
    n: usize,
    objects: ObjectRef,
    #[serde(rename = "match")]
    matching: Option<Matcher>,
}

impl TryFrom<RawAssertion> for Assertion {
    type Error = String;

    fn try_from(raw: RawAssertion) -> Result<Self, String> {
        let id = raw.id;
        let wrong = |text: &str| Err(format!("assertion {id}: {text}"));
        let (from, to) = match (raw.after, raw.between) {
            (Some(from), None) => (from, Point::End),
            (None, Some([from, to])) => (from, to),
            (None, None) => (Point::Start, Point::End),
            (Some(_), Some(_)) => return wrong("after and between exclude each other"),
        };
        let mut within = raw.within;
        let mut hold = raw.hold;
        let mut words = Vec::new();
        if let Some(raw) = raw.eventually {
            let Some(within) = within.take() else {
                return wrong("eventually needs within");
            };
            let state = State {
                object: raw.object,
                matching: raw.matching,
            };
            words.push(Word::Eventually {
                state,
                fails_early: raw.fails_early,
                within,
            });
        }
        if let Some(state) = raw.always {
            words.push(Word::Always {
                state,
                hold: hold.take(),
            });
        }
        if let Some(state) = raw.never {
            words.push(Word::Never { state });
        }
        if let Some(sequence) = raw.sequence {
            words.push(Word::Sequence {
                sequence,
                within: within.take(),
            });
        }
        if let Some(raw) = raw.at_most_once {
            let count = counted(raw.object, raw.path, raw.matching)
                .map_err(|text| format!("assertion {id}: {text}"))?;
            words.push(Word::Count {
                count,
                times: Times::AtMostOnce,
            });
        }
        if let Some(raw) = raw.exactly {
            let count = counted(raw.object, raw.path, raw.matching)
                .map_err(|text| format!("assertion {id}: {text}"))?;
            words.push(Word::Count {
                count,
                times: Times::Exactly(raw.n),
            });
        }
        if let Some(field) = raw.changes {
            let Some(within) = within.take() else {
                return wrong("changes needs within");
            };
            words.push(Word::Changes { field, within });
        }
        if let Some(field) = raw.unchanged {
            words.push(Word::Unchanged { field });
        }
        if let Some(raw) = raw.gone {
            let Some(within) = within.take() else {
                return wrong("gone needs within");
            };
            words.push(Word::Gone {
                object: raw.object,
                within,
            });
        }
        if let Some(raw) = raw.settles {
            let Some(within) = within.take() else {
                return wrong("settles needs within");
            };
            words.push(Word::Settles {
                object: raw.object,
                quiet: raw.quiet,
                within,
            });
        }
        if let Some(raw) = raw.at_most {
            words.push(Word::AtMost {
                n: raw.n,
                objects: raw.objects,
                matching: raw.matching,
            });
        }
        if within.is_some() || hold.is_some() {
            return wrong("within or for stands beside a word that does not take it");
        }
        match words.pop() {
            Some(word) if words.is_empty() => Ok(Self {
                id,
                clause: raw.clause,
                from,
                to,
                word,
                mutants: raw.mutants,
            }),
            _ => wrong("exactly one of the assertion words is needed"),
        }
    }
}

fn counted(
    object: ObjectRef,
    path: Option<Path>,
    matching: Option<Matcher>,
) -> Result<Count, &'static str> {
    let what = match (path, matching) {
        (Some(path), None) => Counted::Changes(path),
        (None, Some(matcher)) => Counted::Entries(matcher),
        _ => return Err("a count needs path or match, and not both"),
    };
    Ok(Count { object, what })
}

impl Word {
    /// The word as it is written.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Eventually { .. } => "eventually",
            Self::Always { .. } => "always",
            Self::Never { .. } => "never",
            Self::Sequence { .. } => "sequence",
            Self::Count {
                times: Times::AtMostOnce,
                ..
            } => "atMostOnce",
            Self::Count {
                times: Times::Exactly(_),
                ..
            } => "exactly",
            Self::Changes { .. } => "changes",
            Self::Unchanged { .. } => "unchanged",
            Self::Gone { .. } => "gone",
            Self::Settles { .. } => "settles",
            Self::AtMost { .. } => "atMost",
        }
    }

    /// The object it looks at.
    pub fn object(&self) -> &ObjectRef {
        match self {
            Self::Eventually { state, .. } | Self::Always { state, .. } | Self::Never { state } => {
                &state.object
            }
            Self::Sequence { sequence, .. } => &sequence.object,
            Self::Count { count, .. } => &count.object,
            Self::Changes { field, .. } | Self::Unchanged { field } => &field.object,
            Self::Gone { object, .. } | Self::Settles { object, .. } => object,
            Self::AtMost { objects, .. } => objects,
        }
    }

    /// Whether it comes true at a certain moment, so that others may start there.
    pub fn has_moment(&self) -> bool {
        match self {
            Self::Eventually { .. }
            | Self::Changes { .. }
            | Self::Gone { .. }
            | Self::Settles { .. } => true,
            Self::Sequence { within, .. } => within.is_some(),
            _ => false,
        }
    }
}
