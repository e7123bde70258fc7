//! The life of an object, line by line: what each version changed against the one before.

use std::collections::BTreeMap;

use conformance_journal::{Entry, Event, entry::Change};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One line of an object's life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Sequence number in the journal.
    pub seq: u64,
    /// Milliseconds since the run began.
    pub t_ms: u64,
    /// `VirtualMachine/vm`.
    pub object: String,
    /// `ADDED`, `MODIFIED`, `DELETED`.
    pub change: String,
    /// What is different, one text per field.
    pub fields: Vec<String>,
}

/// More fields than this are summed up: the first version of a pod has hundreds.
const MOST_FIELDS: usize = 12;

/// Noise that every version changes.
const IGNORED: [&str; 6] = [
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.generation",
    "lastProbeTime",
    "lastTransitionTime",
    "lastHeartbeatTime",
];

/// The lines of all objects that `wanted` takes, in order.
pub fn rows(entries: &[Entry], wanted: impl Fn(&str, &Value) -> bool) -> Vec<Row> {
    let mut before: BTreeMap<String, &Value> = BTreeMap::new();
    let mut rows = Vec::new();
    for entry in entries {
        let Event::Observe {
            change,
            kind,
            object,
        } = &entry.event
        else {
            continue;
        };
        if *change == Change::Bookmark || !wanted(kind, object) {
            continue;
        }
        let name = object
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or("?");
        let key = format!("{kind}/{name}");
        let fields = match (change, before.get(&key)) {
            (Change::Deleted, _) => Vec::new(),
            (_, Some(old)) => differences(old, object),
            (_, None) => first_look(object),
        };
        if *change == Change::Deleted {
            before.remove(&key);
        } else {
            before.insert(key.clone(), object);
        }
        rows.push(Row {
            seq: entry.seq,
            t_ms: entry.millis(),
            object: key,
            change: word(*change).to_owned(),
            fields,
        });
    }
    rows
}

/// What differs between two versions, as `path: old -> new`, leaves only, noise left out.
pub fn differences(old: &Value, new: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", Some(old), Some(new), &mut found);
    if found.len() > MOST_FIELDS {
        let more = found.len() - MOST_FIELDS;
        found.truncate(MOST_FIELDS);
        found.push(format!("… and {more} more"));
    }
    found
}

fn first_look(object: &Value) -> Vec<String> {
    let telling = [
        "/status/phase",
        "/status/printableStatus",
        "/spec/runStrategy",
        "/spec/running",
        "/metadata/uid",
    ];
    let show = |pointer: &&str| {
        object
            .pointer(pointer)
            .map(|value| format!("{}: {value}", pointer[1..].replace('/', ".")))
    };
    telling.iter().filter_map(show).collect()
}

fn compare(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<String>) {
    if old == new
        || IGNORED
            .iter()
            .any(|noise| path == *noise || path.ends_with(&format!(".{noise}")))
    {
        return;
    }
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            for key in old
                .keys()
                .chain(new.keys().filter(|key| !old.contains_key(*key)))
            {
                let at = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                compare(&at, old.get(key), new.get(key), found);
            }
        }
        (old, new) if is_keyed(old) && is_keyed(new) => {
            let (old, new) = (by_type(old), by_type(new));
            for kind in old
                .keys()
                .chain(new.keys().filter(|kind| !old.contains_key(*kind)))
            {
                compare(
                    &format!("{path}[type={kind}]"),
                    old.get(kind).copied(),
                    new.get(kind).copied(),
                    found,
                );
            }
        }
        (old, new) => found.push(format!("{path}: {} -> {}", show(old), show(new))),
    }
}

/// Lists of conditions are compared by their type; their order means nothing.
fn is_keyed(value: Option<&Value>) -> bool {
    match value {
        None => true,
        Some(Value::Array(list)) => list
            .iter()
            .all(|entry| entry.get("type").is_some_and(Value::is_string)),
        Some(_) => false,
    }
}

fn by_type(value: Option<&Value>) -> BTreeMap<&str, &Value> {
    let list = value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .filter_map(|entry| Some((entry.get("type")?.as_str()?, entry)))
        .collect()
}

fn show(value: Option<&Value>) -> String {
    const LONGEST: usize = 120;
    let Some(value) = value else {
        return "absent".to_owned();
    };
    let text = value.to_string();
    if text.chars().count() <= LONGEST {
        text
    } else {
        text.chars().take(LONGEST).chain("…".chars()).collect()
    }
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Added => "ADDED",
        Change::Modified => "MODIFIED",
        Change::Deleted => "DELETED",
        Change::Bookmark => "BOOKMARK",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_leaves_and_conditions_go_by_type() {
        let old = json!({"metadata": {"resourceVersion": "1"}, "status": {"phase": "Pending", "conditions": [
            {"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}});
        let new = json!({"metadata": {"resourceVersion": "2"}, "status": {"phase": "Running", "conditions": [
            {"type": "B", "status": "False"}, {"type": "A", "status": "True"}]}});
        assert_eq!(
            differences(&old, &new),
            [
                "status.phase: \"Pending\" -> \"Running\"",
                "status.conditions[type=B].status: \"True\" -> \"False\""
            ]
        );
    }
}
