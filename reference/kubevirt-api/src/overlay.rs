//! Carries a change of a typed object over to the JSON that the user sent.
//!
//! Our types do not know every field. Writing the typed object back would drop the others, so only
//! the difference between its states before and after is applied.

use serde_json::{Map, Value};

/// Applies to `raw` what differs between `before` and `after`; the rest of `raw` stays.
#[must_use]
pub fn apply(raw: Value, before: &Value, after: &Value) -> Value {
    match (raw, before, after) {
        (Value::Object(raw), Value::Object(before), Value::Object(after)) => {
            Value::Object(objects(raw, before, after))
        }
        (Value::Array(raw), Value::Array(before), Value::Array(after)) => {
            Value::Array(arrays(raw, before, after))
        }
        (raw, before, after) if before == after && !must_be_written(&raw, after) => raw,
        (_, _, after) => after.clone(),
    }
}

/// Whether the typed form is to be stored although nothing changed: a null that was filled, or a
/// quantity that was sent as a number and is kept as text.
fn must_be_written(raw: &Value, after: &Value) -> bool {
    raw.is_null() || raw.is_number() && after.is_string()
}

fn objects(
    mut raw: Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        raw.remove(key);
    }
    for (key, value) in after {
        let merged = match raw.remove(key) {
            Some(old) => apply(old, before.get(key).unwrap_or(&Value::Null), value),
            None => value.clone(),
        };
        raw.insert(key.clone(), merged);
    }
    raw
}

fn arrays(raw: Vec<Value>, before: &[Value], after: &[Value]) -> Vec<Value> {
    let mut raw = raw.into_iter();
    after
        .iter()
        .enumerate()
        .map(|(i, value)| match (raw.next(), before.get(i)) {
            (Some(old), Some(before)) => apply(old, before, value),
            _ => value.clone(),
        })
        .collect()
}

/// Drops nulls from objects: to Kubernetes a null field is one that is not there.
#[must_use]
pub fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key, without_nulls(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::unknown_fields_stay(
        json!({"a": 1, "unknown": 2}), json!({"a": 1}), json!({"a": 1, "b": 3}),
        json!({"a": 1, "unknown": 2, "b": 3}))]
    #[case::filled_in_objects_appear(
        json!({}), json!({"devices": {}}), json!({"devices": {"disks": []}}),
        json!({"devices": {"disks": []}}))]
    #[case::nulls_are_filled(json!({"a": null}), json!({"a": {}}), json!({"a": {}}), json!({"a": {}}))]
    #[case::removed_fields_go(json!({"a": 1, "b": 2}), json!({"a": 1, "b": 2}), json!({"a": 1}), json!({"a": 1}))]
    #[case::members_keep_what_we_do_not_know(
        json!([{"name": "x", "extra": 1}]), json!([{"name": "x"}]), json!([{"name": "x", "bus": "sata"}, {"name": "y"}]),
        json!([{"name": "x", "extra": 1, "bus": "sata"}, {"name": "y"}]))]
    #[case::other_spellings_of_the_same_stay(json!({"n": "01"}), json!({"n": "1"}), json!({"n": "1"}), json!({"n": "01"}))]
    #[case::numbers_that_are_texts_become_texts(json!({"c": 1}), json!({"c": "1"}), json!({"c": "1"}), json!({"c": "1"}))]
    fn only_the_difference_is_applied(
        #[case] raw: Value,
        #[case] before: Value,
        #[case] after: Value,
        #[case] expected: Value,
    ) {
        assert_eq!(apply(raw, &before, &after), expected);
    }

    #[test]
    fn nulls_go_at_every_depth() {
        let value = json!({"a": null, "b": [{"c": null, "d": 1}]});
        assert_eq!(without_nulls(value), json!({"b": [{"d": 1}]}));
    }
}
