//! Writes that send only what changed and only onto what was read.
//!
//! The types of this workspace know a part of KubeVirt's fields. A patch of the difference leaves
//! the other fields alone, and the resource version in it makes the server refuse it when somebody
//! wrote in between.

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use virt_kit::retry;

/// What became of a write.
#[derive(Debug, PartialEq)]
pub(crate) enum Written<K> {
    /// There was nothing to write.
    Unchanged,
    /// Written; the object as the server keeps it.
    Done(Box<K>),
    /// Somebody wrote first or the object is gone: the next event brings the new state.
    Overtaken,
}

/// RFC 7396 patch that turns `from` into `to`; none when they are equal.
pub(crate) fn difference(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let gone = from.keys().filter(|key| !to.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), Value::Null)).collect();
    for (key, after) in to {
        let change = match from.get(key) {
            Some(before) => difference(before, after),
            None => Some(after.clone()),
        };
        if let Some(change) = change {
            patch.insert(key.clone(), change);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// The patch from one version of an object to another, bound to the version that was read.
pub(crate) fn between<K>(old: &K, new: &K) -> Result<Option<Value>, serde_json::Error>
where
    K: Resource + Serialize,
{
    let Some(mut patch) = difference(&serde_json::to_value(old)?, &serde_json::to_value(new)?)
    else {
        return Ok(None);
    };
    if let Some(version) = &old.meta().resource_version {
        patch["metadata"]["resourceVersion"] = json!(version);
    }
    Ok(Some(patch))
}

/// Where a patch goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    /// The object itself.
    Object,
    /// Its status subresource.
    Status,
}

/// Brings `old` to `new` on the server.
pub(crate) async fn write<K>(
    api: &Api<K>,
    target: Target,
    old: &K,
    new: &K,
) -> Result<Written<K>, kube::Error>
where
    K: Resource + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
{
    let name = old.meta().name.as_deref().unwrap_or_default();
    let Some(patch) = between(old, new).map_err(kube::Error::SerdeError)? else {
        return Ok(Written::Unchanged);
    };
    let patch = Patch::Merge(patch);
    let params = PatchParams::default();
    let result = match target {
        Target::Object => api.patch(name, &params, &patch).await,
        Target::Status => api.patch_status(name, &params, &patch).await,
    };
    match result {
        Ok(object) => Ok(Written::Done(Box::new(object))),
        Err(error) if retry::is_conflict(&error) || retry::is_not_found(&error) => {
            Ok(Written::Overtaken)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::equal(json!({"a": 1}), json!({"a": 1}), None)]
    #[case::new_key(json!({}), json!({"a": {"b": 1}}), Some(json!({"a": {"b": 1}})))]
    #[case::gone_key(json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null})))]
    #[case::inner(json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1, "c": 3}}), Some(json!({"a": {"c": 3}})))]
    #[case::lists_are_replaced(json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]})))]
    #[case::order_of_keys_is_nothing(json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1}), None)]
    fn differences(#[case] from: Value, #[case] to: Value, #[case] want: Option<Value>) {
        let got = difference(&from, &to);
        assert_eq!(got, want);
        let mut patched = from;
        if let Some(patch) = got {
            json_patch::merge(&mut patched, &patch);
        }
        assert_eq!(patched, to);
    }

    #[test]
    fn a_patch_is_bound_to_what_was_read() {
        let pod = |labels: Value| -> k8s_openapi::api::core::v1::Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "p", "resourceVersion": "7", "labels": labels}
            }))
            .unwrap()
        };
        let patch = between(&pod(json!({"a": "1"})), &pod(json!({"a": "2"}))).unwrap();
        assert_eq!(
            patch,
            Some(json!({"metadata": {"labels": {"a": "2"}, "resourceVersion": "7"}}))
        );
    }
}
