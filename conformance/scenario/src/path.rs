//! Paths into objects: `status.conditions[type=Ready].status`, `metadata.annotations[a.b/c]`, `spec.disks[0]`.
//!
//! One notation for reading, for setting in templates and for mutants.

use std::{fmt, str::FromStr};

use serde::Deserialize;
use serde_json::{Map, Value};

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Path {
    text: String,
    steps: Vec<Step>,
}

/// A text that is not a path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{text}\" is not a path: {why}")]
pub struct PathError {
    text: String,
    why: &'static str,
}

/// A path that leads through something that is neither a map nor a list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set {path}: {at} is in the way")]
pub struct SetError {
    path: String,
    at: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
    Entry { key: String, value: String },
}

impl Path {
    /// The value at this path, if there is one.
    pub fn get<'v>(&self, root: &'v Value) -> Option<&'v Value> {
        self.steps.iter().try_fold(root, |at, step| step.get(at))
    }

    /// Puts a value at this path, making the maps and list entries on the way.
    pub fn set(&self, root: &mut Value, value: Value) -> Result<(), SetError> {
        let mut at = root;
        for step in &self.steps {
            let shown = step.to_string();
            at = step.enter(at).ok_or_else(|| SetError {
                path: self.text.clone(),
                at: shown,
            })?;
        }
        *at = value;
        Ok(())
    }

    /// Takes away what is at this path; true when there was something.
    pub fn remove(&self, root: &mut Value) -> bool {
        let Some((last, before)) = self.steps.split_last() else {
            return false;
        };
        let Some(parent) = before.iter().try_fold(root, |at, step| step.get_mut(at)) else {
            return false;
        };
        last.remove_from(parent)
    }
}

impl Step {
    fn get<'v>(&self, at: &'v Value) -> Option<&'v Value> {
        match self {
            Self::Key(key) => at.as_object()?.get(key),
            Self::Index(index) => at.as_array()?.get(*index),
            Self::Entry { .. } => at.as_array()?.iter().find(|entry| self.selects(entry)),
        }
    }

    fn get_mut<'v>(&self, at: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Self::Key(key) => at.as_object_mut()?.get_mut(key),
            Self::Index(index) => at.as_array_mut()?.get_mut(*index),
            Self::Entry { .. } => at
                .as_array_mut()?
                .iter_mut()
                .find(|entry| self.selects(entry)),
        }
    }

    fn enter<'v>(&self, at: &'v mut Value) -> Option<&'v mut Value> {
        match self {
            Self::Key(key) => {
                if at.is_null() {
                    *at = Value::Object(Map::new());
                }
                Some(
                    at.as_object_mut()?
                        .entry(key.clone())
                        .or_insert(Value::Null),
                )
            }
            Self::Index(index) => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut()?;
                if *index == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(*index)
            }
            Self::Entry { key, value } => {
                if at.is_null() {
                    *at = Value::Array(Vec::new());
                }
                let list = at.as_array_mut()?;
                let found = list.iter().position(|entry| self.selects(entry));
                let index = found.unwrap_or_else(|| {
                    let mut entry = Map::new();
                    entry.insert(key.clone(), Value::String(value.clone()));
                    list.push(Value::Object(entry));
                    list.len() - 1
                });
                list.get_mut(index)
            }
        }
    }

    fn remove_from(&self, parent: &mut Value) -> bool {
        match (self, parent) {
            // shift_remove keeps the order of the other keys, so that a diff shows one change only.
            (Self::Key(key), Value::Object(map)) => map.shift_remove(key).is_some(),
            (Self::Index(index), Value::Array(list)) if *index < list.len() => {
                list.remove(*index);
                true
            }
            (Self::Entry { .. }, Value::Array(list)) => {
                let before = list.len();
                list.retain(|entry| !self.selects(entry));
                list.len() < before
            }
            _ => false,
        }
    }

    fn selects(&self, entry: &Value) -> bool {
        let Self::Entry { key, value } = self else {
            return false;
        };
        entry.get(key).is_some_and(|found| text_of(found) == *value)
    }
}

/// Finds the entry of a list by the text `[key=value]`; `None` when the text is not of that form.
pub(crate) fn entry_key(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('[')?.strip_suffix(']')?.split_once('=')
}

/// A scalar as plain text, for comparing with what stands in a path.
pub(crate) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => f.write_str(key),
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Entry { key, value } => write!(f, "[{key}={value}]"),
        }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let wrong = |why| PathError {
            text: text.to_owned(),
            why,
        };
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            if let Some(bracket) = rest.strip_prefix('[') {
                let close = bracket
                    .find(']')
                    .ok_or_else(|| wrong("a bracket is not closed"))?;
                steps.push(bracket_step(&bracket[..close]).ok_or_else(|| wrong("empty brackets"))?);
                rest = &bracket[close + 1..];
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                if end == 0 {
                    return Err(wrong("empty name between dots"));
                }
                steps.push(Step::Key(rest[..end].to_owned()));
                rest = &rest[end..];
            }
            if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() {
                    return Err(wrong("it ends with a dot"));
                }
                rest = after;
            }
        }
        if steps.is_empty() {
            return Err(wrong("it is empty"));
        }
        Ok(Self {
            text: text.to_owned(),
            steps,
        })
    }
}

fn bracket_step(inside: &str) -> Option<Step> {
    if inside.is_empty() {
        return None;
    }
    if let Ok(index) = inside.parse() {
        return Some(Step::Index(index));
    }
    Some(match inside.split_once('=') {
        Some((key, value)) => Step::Entry {
            key: key.to_owned(),
            value: value.to_owned(),
        },
        None => Step::Key(inside.to_owned()),
    })
}

impl TryFrom<String> for Path {
    type Error = PathError;

    fn try_from(text: String) -> Result<Self, PathError> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[rstest]
    #[case("status.phase", json!("Running"))]
    #[case("status.conditions[type=Ready].status", json!("True"))]
    #[case("metadata.annotations[kubevirt.io/heartbeat]", json!("now"))]
    #[case("spec.disks[1].name", json!("b"))]
    fn reads(#[case] text: &str, #[case] wanted: Value) {
        let object = json!({
            "metadata": {"annotations": {"kubevirt.io/heartbeat": "now"}},
            "spec": {"disks": [{"name": "a"}, {"name": "b"}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        });
        assert_eq!(path(text).get(&object), Some(&wanted));
    }

    #[rstest]
    #[case("spec.running", json!({}), json!({"spec": {"running": 1}}))]
    #[case("a[0]", json!({}), json!({"a": [1]}))]
    #[case("c[type=Ready].status", json!({}), json!({"c": [{"type": "Ready", "status": 1}]}))]
    #[case("c[type=B].x", json!({"c": [{"type": "A"}]}), json!({"c": [{"type": "A"}, {"type": "B", "x": 1}]}))]
    fn sets_and_makes_the_way(
        #[case] text: &str,
        #[case] mut object: Value,
        #[case] wanted: Value,
    ) {
        path(text).set(&mut object, json!(1)).unwrap();
        assert_eq!(object, wanted);
    }

    #[test]
    fn a_scalar_in_the_way_is_an_error() {
        assert!(path("a.b").set(&mut json!({"a": 1}), json!(2)).is_err());
    }

    #[rstest]
    #[case("a.b", json!({"a": {"b": 1, "c": 2}}), json!({"a": {"c": 2}}), true)]
    #[case("a[x=1]", json!({"a": [{"x": 1}, {"x": 2}]}), json!({"a": [{"x": 2}]}), true)]
    #[case("a.q", json!({"a": {}}), json!({"a": {}}), false)]
    fn removes(
        #[case] text: &str,
        #[case] mut object: Value,
        #[case] wanted: Value,
        #[case] found: bool,
    ) {
        assert_eq!(path(text).remove(&mut object), found);
        assert_eq!(object, wanted);
    }

    #[rstest]
    #[case("")]
    #[case("a..b")]
    #[case("a.")]
    #[case("a[")]
    #[case("a[]")]
    fn refuses(#[case] text: &str) {
        assert!(text.parse::<Path>().is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_a_path_or_an_error(text in ".{0,24}") {
            if let Ok(parsed) = text.parse::<Path>() {
                prop_assert_eq!(parsed.to_string(), text);
            }
        }

        #[test]
        fn what_was_set_can_be_read(keys in proptest::collection::vec("[a-z]{1,5}", 1..5), value in any::<i32>()) {
            let parsed = path(&keys.join("."));
            let mut object = json!({});
            parsed.set(&mut object, json!(value)).unwrap();
            prop_assert_eq!(parsed.get(&object), Some(&json!(value)));
        }
    }
}
