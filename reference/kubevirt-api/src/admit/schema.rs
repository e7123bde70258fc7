//! What the original's mutating webhooks say of objects that do not fit the schema, before the API
//! server itself looks: missing fields, wrong types, words that do not exist.

use std::fmt;

use serde_json::Value;

use super::Cause;
use crate::crd::upstream::{self, Kind, Presence};

/// A fault against the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A field is not there.
    Required(String),
    /// A value has another type.
    Type {
        /// Where.
        path: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A word is not one of those that exist.
    Word {
        /// Where.
        path: String,
        /// The words.
        known: Vec<String>,
    },
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required(path) => write!(f, "{path} in body is required"),
            Self::Type {
                path,
                expected,
                found,
            } => {
                write!(f, "{path} in body must be of type {expected}: \"{found}\"")
            }
            Self::Word { path, known } => {
                write!(f, "{path} in body should be one of [{}]", known.join(" "))
            }
        }
    }
}

impl From<Missing> for Cause {
    fn from(missing: Missing) -> Self {
        Self {
            reason: None,
            message: missing.to_string(),
            field: None,
        }
    }
}

/// Faults of an object's `spec` against the original's table; `type_` is such as `v1.VirtualMachineSpec`.
#[must_use]
pub fn conforms(object: &Value, type_: &str) -> Vec<Missing> {
    let mut faults = Vec::new();
    match &object["spec"] {
        Value::Null => faults.push(Missing::Required("spec".to_owned())),
        spec => check(spec, &Kind::Object(type_.to_owned()), "spec", &mut faults),
    }
    faults
}

fn check(value: &Value, kind: &Kind, path: &str, faults: &mut Vec<Missing>) {
    match (kind, value) {
        (Kind::Object(type_), Value::Object(_)) => check_object(value, type_, path, faults),
        (Kind::List(member, _), Value::Array(list)) => {
            // The original's paths do not number the members.
            for item in list {
                check(item, member, path, faults);
            }
        }
        (Kind::Map(inner), Value::Object(map)) => {
            for (key, item) in map {
                check(item, inner, &format!("{path}.{key}"), faults);
            }
        }
        (Kind::Text(known), Value::String(word)) => {
            if !known.is_empty() && !word.is_empty() && !known.contains(word) {
                faults.push(Missing::Word {
                    path: path.to_owned(),
                    known: known.clone(),
                });
            }
        }
        _ => {
            if let Some(expected) = wrong_type(kind, value) {
                faults.push(Missing::Type {
                    path: path.to_owned(),
                    expected,
                    found: type_name(value),
                });
            }
        }
    }
}

fn check_object(value: &Value, type_: &str, path: &str, faults: &mut Vec<Missing>) {
    for field in upstream::fields(type_) {
        let path = format!("{path}.{}", field.name);
        match value.get(&field.name) {
            Some(Value::Null) | None if field.presence == Presence::Required => {
                faults.push(Missing::Required(path))
            }
            Some(Value::Null) | None => {}
            Some(inner) => check(inner, &field.kind, &path, faults),
        }
    }
}

fn wrong_type(kind: &Kind, value: &Value) -> Option<&'static str> {
    let (expected, fits) = match kind {
        Kind::Object(_) | Kind::Map(_) => ("object", value.is_object()),
        Kind::List(..) => ("array", value.is_array()),
        Kind::Text(_) | Kind::Time => ("string", value.is_string()),
        Kind::Integer(_) => ("integer", value.is_i64() || value.is_u64()),
        Kind::Number => ("number", value.is_number()),
        Kind::Boolean => ("boolean", value.is_boolean()),
        Kind::Quantity => ("string", value.is_string() || value.is_number()),
        Kind::Foreign(_) => return None,
    };
    (!fits).then_some(expected)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
