//! Partial matching of objects: what a scenario says must be there; everything else may be.
//!
//! Maps match by key. A list of expected entries matches when each finds its own entry, in any order; `[type=Ready]`
//! addresses one entry by key. Words that start with `$` compare: `$present`, `$absent`, `$regex`, `$not`, `$in`,
//! `$exactly`, `$size`, `$min`. A word that is not known is an error when the file is read, never a match.

use std::fmt;

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use crate::path::{entry_key, text_of};

/// A compiled expectation.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Value")]
pub struct Matcher {
    node: Node,
    source: Value,
}

/// An expectation that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatcherError {
    /// A comparison that does not exist.
    #[error(
        "unknown comparison {0}: known are $present, $absent, $regex, $not, $in, $exactly, $size, $min"
    )]
    UnknownWord(String),
    /// A comparison beside other keys.
    #[error("{0} must stand alone in its map")]
    NotAlone(String),
    /// A comparison with an argument of the wrong type.
    #[error("{word} wants {wanted}")]
    Argument {
        /// The comparison.
        word: &'static str,
        /// What it takes.
        wanted: &'static str,
    },
    /// A regular expression that does not compile.
    #[error("{0}")]
    Regex(String),
}

/// One place where an object is not what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Where.
    pub path: String,
    /// What was expected, in words.
    pub expected: String,
    /// What stands there; "absent" when nothing does.
    pub actual: String,
}

#[derive(Debug, Clone)]
enum Node {
    Equal(Value),
    Map(Vec<(String, Node)>),
    Some(Vec<Node>),
    Exactly(Vec<Node>),
    Present,
    Absent,
    Regex(Regex),
    Not(Box<Node>),
    In(Vec<Value>),
    Size(usize),
    Min(f64),
}

impl Matcher {
    /// Whether the object is as expected.
    pub fn matches(&self, actual: &Value) -> bool {
        self.node.holds(Some(actual))
    }

    /// Every place where the object differs from what is expected; empty exactly when `matches` is true.
    pub fn explain(&self, actual: &Value) -> Vec<Mismatch> {
        let mut found = Vec::new();
        self.node.explain("", Some(actual), &mut found);
        found
    }

    /// The expectation as it was written.
    pub fn source(&self) -> &Value {
        &self.source
    }
}

impl PartialEq for Matcher {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl TryFrom<Value> for Matcher {
    type Error = MatcherError;

    fn try_from(source: Value) -> Result<Self, MatcherError> {
        Ok(Self {
            node: compile(&source)?,
            source,
        })
    }
}

fn compile(value: &Value) -> Result<Node, MatcherError> {
    match value {
        Value::Object(map) => {
            if let Some((word, argument)) = map.iter().find(|(key, _)| key.starts_with('$')) {
                if map.len() > 1 {
                    return Err(MatcherError::NotAlone(word.clone()));
                }
                return compile_word(word, argument);
            }
            let fields: Result<_, _> = map
                .iter()
                .map(|(key, value)| Ok((key.clone(), compile(value)?)))
                .collect();
            Ok(Node::Map(fields?))
        }
        Value::Array(list) => Ok(Node::Some(compile_all(list)?)),
        Value::Null => Ok(Node::Absent),
        scalar => Ok(Node::Equal(scalar.clone())),
    }
}

fn compile_word(word: &str, argument: &Value) -> Result<Node, MatcherError> {
    let list = |word| {
        argument.as_array().ok_or(MatcherError::Argument {
            word,
            wanted: "a list",
        })
    };
    let yes = |word, node| match argument {
        Value::Bool(true) => Ok(node),
        _ => Err(MatcherError::Argument {
            word,
            wanted: "true",
        }),
    };
    match word {
        "$present" => yes("$present", Node::Present),
        "$absent" => yes("$absent", Node::Absent),
        "$regex" => {
            let text = argument.as_str().ok_or(MatcherError::Argument {
                word: "$regex",
                wanted: "a text",
            })?;
            Regex::new(text)
                .map(Node::Regex)
                .map_err(|error| MatcherError::Regex(error.to_string()))
        }
        "$not" => Ok(Node::Not(Box::new(compile(argument)?))),
        "$in" => Ok(Node::In(list("$in")?.clone())),
        "$exactly" => Ok(Node::Exactly(compile_all(list("$exactly")?)?)),
        "$size" => {
            let size = argument
                .as_u64()
                .and_then(|size| usize::try_from(size).ok());
            size.map(Node::Size).ok_or(MatcherError::Argument {
                word: "$size",
                wanted: "a whole number",
            })
        }
        "$min" => argument
            .as_f64()
            .map(Node::Min)
            .ok_or(MatcherError::Argument {
                word: "$min",
                wanted: "a number",
            }),
        unknown => Err(MatcherError::UnknownWord(unknown.to_owned())),
    }
}

fn compile_all(list: &[Value]) -> Result<Vec<Node>, MatcherError> {
    list.iter().map(compile).collect()
}

impl Node {
    fn holds(&self, actual: Option<&Value>) -> bool {
        let actual = actual.filter(|value| !value.is_null());
        match (self, actual) {
            (Self::Absent, actual) => actual.is_none(),
            (Self::Not(inner), actual) => !inner.holds(actual),
            // An expected map of absences matches where the map itself is missing.
            (Self::Map(fields), None) => {
                !fields.is_empty() && fields.iter().all(|(_, node)| node.holds(None))
            }
            (_, None) => false,
            (Self::Present, Some(_)) => true,
            (Self::Equal(wanted), Some(found)) => same(wanted, found),
            (Self::Regex(regex), Some(found)) => regex.is_match(&text_of(found)),
            (Self::In(wanted), Some(found)) => wanted.iter().any(|wanted| same(wanted, found)),
            (Self::Size(size), Some(found)) => length(found) == Some(*size),
            (Self::Min(least), Some(found)) => number(found).is_some_and(|found| found >= *least),
            (Self::Map(fields), Some(found)) => fields
                .iter()
                .all(|(key, node)| node.holds(child(found, key))),
            (Self::Some(wanted), Some(Value::Array(found))) => each_finds_its_own(wanted, found),
            (Self::Exactly(wanted), Some(Value::Array(found))) => {
                wanted.len() == found.len()
                    && wanted
                        .iter()
                        .zip(found)
                        .all(|(node, value)| node.holds(Some(value)))
            }
            (Self::Some(_) | Self::Exactly(_), Some(_)) => false,
        }
    }

    fn explain(&self, path: &str, actual: Option<&Value>, found: &mut Vec<Mismatch>) {
        if self.holds(actual) {
            return;
        }
        if let (Self::Map(fields), Some(Value::Object(_) | Value::Array(_))) = (self, actual) {
            for (key, node) in fields {
                let at = if path.is_empty() || key.starts_with('[') {
                    format!("{path}{key}")
                } else {
                    format!("{path}.{key}")
                };
                node.explain(&at, actual.and_then(|actual| child(actual, key)), found);
            }
            return;
        }
        found.push(Mismatch {
            path: path.to_owned(),
            expected: self.to_string(),
            actual: actual.map_or_else(|| "absent".to_owned(), shorten),
        });
    }
}

fn child<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match (value, entry_key(key)) {
        (Value::Array(list), Some((name, wanted))) => list.iter().find(|entry| {
            entry
                .get(name)
                .is_some_and(|found| text_of(found) == wanted)
        }),
        (Value::Object(map), _) => map.get(key),
        _ => None,
    }
}

/// A small matching problem: each expected entry needs its own actual entry. Lists in objects are short.
fn each_finds_its_own(wanted: &[Node], found: &[Value]) -> bool {
    fn place(wanted: &[Node], found: &[Value], taken: &mut Vec<bool>) -> bool {
        let Some((first, rest)) = wanted.split_first() else {
            return true;
        };
        for index in 0..found.len() {
            if !taken[index] && first.holds(Some(&found[index])) {
                taken[index] = true;
                if place(rest, found, taken) {
                    return true;
                }
                taken[index] = false;
            }
        }
        false
    }
    place(wanted, found, &mut vec![false; found.len()])
}

fn same(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => wanted == found,
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

fn length(value: &Value) -> Option<usize> {
    match value {
        Value::Array(list) => Some(list.len()),
        Value::Object(map) => Some(map.len()),
        _ => None,
    }
}

fn shorten(value: &Value) -> String {
    const LONGEST: usize = 200;
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        text
    } else {
        text.chars().take(LONGEST).chain("…".chars()).collect()
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |nodes: &[Self]| {
            nodes
                .iter()
                .map(Self::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        match self {
            Self::Equal(value) => write!(f, "{value}"),
            Self::Present => f.write_str("present"),
            Self::Absent => f.write_str("absent"),
            Self::Regex(regex) => write!(f, "text like /{regex}/"),
            Self::Not(inner) => write!(f, "not {inner}"),
            Self::In(values) => {
                let values: Vec<_> = values.iter().map(Value::to_string).collect();
                write!(f, "one of {}", values.join(", "))
            }
            Self::Size(size) => write!(f, "{size} entries"),
            Self::Min(least) => write!(f, "at least {least}"),
            Self::Some(nodes) => write!(f, "a list with {}", list(nodes)),
            Self::Exactly(nodes) => write!(f, "exactly [{}]", list(nodes)),
            Self::Map(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(key, node)| format!("{key}: {node}"))
                    .collect();
                write!(f, "{{{}}}", fields.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn object() -> Value {
        json!({
            "metadata": {"name": "vm", "labels": {"a.b/c": "1"}},
            "spec": {"n": 3, "disks": [{"name": "a", "bus": "virtio"}, {"name": "b"}]},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": "True"}, {"type": "Paused", "status": "False"}]},
        })
    }

    #[rstest]
    #[case(json!({"status": {"phase": "Running"}}), true)]
    #[case(json!({"status": {"phase": "Failed"}}), false)]
    #[case(json!({"spec": {"n": 3}}), true)]
    #[case(json!({"spec": {"n": 3.0}}), true)]
    #[case(json!({"spec": {"n": "3"}}), false)]
    #[case(json!({"status": {"conditions": {"[type=Ready]": {"status": "True"}}}}), true)]
    #[case(json!({"status": {"conditions": {"[type=Ready]": {"status": "False"}}}}), false)]
    #[case(json!({"status": {"conditions": {"[type=Gone]": {"$absent": true}}}}), true)]
    #[case(json!({"status": {"conditions": {"[type=Ready]": {"$absent": true}}}}), false)]
    #[case(json!({"spec": {"disks": [{"name": "b"}, {"name": "a"}]}}), true)]
    #[case(json!({"spec": {"disks": [{"name": "a"}, {"name": "a"}]}}), false)]
    #[case(json!({"spec": {"disks": {"$exactly": [{"name": "a"}, {"name": "b"}]}}}), true)]
    #[case(json!({"spec": {"disks": {"$exactly": [{"name": "b"}, {"name": "a"}]}}}), false)]
    #[case(json!({"spec": {"disks": {"$size": 2}}}), true)]
    #[case(json!({"status": {"phase": {"$in": ["Running", "Pending"]}}}), true)]
    #[case(json!({"status": {"phase": {"$not": {"$in": ["Running"]}}}}), false)]
    #[case(json!({"status": {"phase": {"$not": "Failed"}}}), true)]
    #[case(json!({"status": {"reason": {"$not": "x"}}}), true)]
    #[case(json!({"status": {"phase": {"$regex": "^Run"}}}), true)]
    #[case(json!({"status": {"nothing": {"$present": true}}}), false)]
    #[case(json!({"status": {"nothing": null}}), true)]
    #[case(json!({"nothing": {"deep": {"$absent": true}}}), true)]
    #[case(json!({"nothing": {}}), false)]
    #[case(json!({"spec": {"n": {"$min": 3}}}), true)]
    #[case(json!({"spec": {"n": {"$min": 4}}}), false)]
    fn matches_and_explanations_agree(#[case] expected: Value, #[case] wanted: bool) {
        let matcher = Matcher::try_from(expected).unwrap();
        assert_eq!(matcher.matches(&object()), wanted);
        assert_eq!(matcher.explain(&object()).is_empty(), wanted);
    }

    #[test]
    fn an_explanation_names_place_expected_and_actual() {
        let expected = json!({"status": {"conditions": {"[type=Ready]": {"status": "False"}}}});
        let found = Matcher::try_from(expected).unwrap().explain(&object());
        assert_eq!(
            found,
            [Mismatch {
                path: "status.conditions[type=Ready].status".into(),
                expected: "\"False\"".into(),
                actual: "\"True\"".into()
            }]
        );
    }

    #[rstest]
    #[case(json!({"$presnt": true}))]
    #[case(json!({"$present": false}))]
    #[case(json!({"$regex": "("}))]
    #[case(json!({"$in": 3}))]
    #[case(json!({"$not": {"$nope": 1}}))]
    #[case(json!({"$present": true, "b": 1}))]
    fn unknown_or_broken_words_are_refused(#[case] expected: Value) {
        assert!(Matcher::try_from(expected).is_err());
    }
}
