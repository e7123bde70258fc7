//! Templates: a manifest with `$(name)` in it, filled with values, then changed by path.
//!
//! `$(name)` alone is replaced by the value with its type; inside a longer text by its text. `$(name=default)` gives
//! a default. A parameter without value or default is an error, and so is a value that nothing uses.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{
    path::{Path, PathError, SetError, text_of},
    yaml::{YamlError, parse_words},
};

/// A template that cannot be filled.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// A parameter without a value.
    #[error("parameter $({0}) has no value and no default")]
    Missing(String),
    /// Values that the template does not use.
    #[error("the template has no parameter {0}")]
    Unused(String),
    /// A default that is not YAML.
    #[error("default of a parameter")]
    Default(#[from] YamlError),
    /// A path in `set`.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A path that leads nowhere.
    #[error(transparent)]
    Set(#[from] SetError),
}

/// Fills a template. `given` are the scenario's values, each of which must be used; `ambient` are values that the run
/// provides (`namespace`, `image.…`), which need not be.
pub fn fill(
    template: &Value,
    given: &Map<String, Value>,
    ambient: &Map<String, Value>,
) -> Result<Value, TemplateError> {
    let mut filler = Filler {
        given,
        ambient,
        used: BTreeSet::new(),
    };
    let filled = filler.value(template)?;
    match given.keys().find(|key| !filler.used.contains(*key)) {
        Some(unused) => Err(TemplateError::Unused(unused.clone())),
        None => Ok(filled),
    }
}

/// Changes a manifest by path.
pub fn change(
    manifest: &mut Value,
    set: &Map<String, Value>,
    unset: &[Path],
) -> Result<(), TemplateError> {
    for (path, value) in set {
        path.parse::<Path>()?.set(manifest, value.clone())?;
    }
    for path in unset {
        path.remove(manifest);
    }
    Ok(())
}

struct Filler<'a> {
    given: &'a Map<String, Value>,
    ambient: &'a Map<String, Value>,
    used: BTreeSet<String>,
}

impl Filler<'_> {
    fn value(&mut self, value: &Value) -> Result<Value, TemplateError> {
        match value {
            Value::String(text) => self.text(text),
            Value::Array(list) => list.iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| Ok((text_of(&self.text(key)?), self.value(value)?)))
                .collect(),
            other => Ok(other.clone()),
        }
    }

    fn text(&mut self, text: &str) -> Result<Value, TemplateError> {
        let mut out = String::new();
        let mut rest = text;
        while let Some(open) = rest.find("$(") {
            let Some(length) = rest[open..].find(')') else {
                break;
            };
            let inside = &rest[open + 2..open + length];
            let value = self.parameter(inside)?;
            let after = &rest[open + length + 1..];
            if out.is_empty() && open == 0 && after.is_empty() {
                return Ok(value);
            }
            out.push_str(&rest[..open]);
            out.push_str(&text_of(&value));
            rest = after;
        }
        out.push_str(rest);
        Ok(Value::String(out))
    }

    fn parameter(&mut self, inside: &str) -> Result<Value, TemplateError> {
        let (name, default) = match inside.split_once('=') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if let Some(value) = self.given.get(name) {
            self.used.insert(name.to_owned());
            return Ok(value.clone());
        }
        if let Some(value) = self.ambient.get(name) {
            return Ok(value.clone());
        }
        match default {
            Some(default) => Ok(parse_words(std::path::Path::new(name), default)?),
            None => Err(TemplateError::Missing(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    #[rstest]
    #[case(json!({"a": "$(x)"}), json!({"x": 3}), json!({"a": 3}))]
    #[case(json!({"a": "v$(x)-$(x)"}), json!({"x": 3}), json!({"a": "v3-3"}))]
    #[case(json!({"a": "$(x=true)"}), json!({}), json!({"a": true}))]
    #[case(json!({"a": "$(x=true)"}), json!({"x": false}), json!({"a": false}))]
    #[case(json!({"a": ["$(namespace)"]}), json!({}), json!({"a": ["ns"]}))]
    #[case(json!({"k-$(x)": 1}), json!({"x": "y"}), json!({"k-y": 1}))]
    fn fills(#[case] template: Value, #[case] given: Value, #[case] wanted: Value) {
        let filled = fill(&template, &map(given), &map(json!({"namespace": "ns"}))).unwrap();
        assert_eq!(filled, wanted);
    }

    #[rstest]
    #[case(json!("$(x)"), json!({}))]
    #[case(json!("a"), json!({"x": 1}))]
    fn refuses_missing_and_unused(#[case] template: Value, #[case] given: Value) {
        assert!(fill(&template, &map(given), &Map::new()).is_err());
    }

    #[test]
    fn changes_by_path() {
        let mut manifest = json!({"spec": {"runStrategy": "Halted"}});
        let unset = ["spec.runStrategy".parse().unwrap()];
        change(&mut manifest, &map(json!({"spec.running": true})), &unset).unwrap();
        assert_eq!(manifest, json!({"spec": {"running": true}}));
    }
}
