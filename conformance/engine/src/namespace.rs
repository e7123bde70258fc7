//! A scenario's own namespace: made before, deleted after, and if something will not go, named with what holds it.

use std::time::Duration;

use conformance_scenario::{ScenarioId, kinds};
use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    retry::Backoff,
    stage::delete_call,
    watch::{Scope, until},
    wire::{Call, CallError, Content, Reply, Wire},
};

/// A server that restarts is back within this time.
const OUTAGE: Duration = Duration::from_secs(60);
/// The default ServiceAccount follows a namespace within this time.
const ACCOUNT: Duration = Duration::from_secs(20);

/// A namespace of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its uid: a namesake is not ours.
    pub uid: String,
}

/// A namespace that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The server did not answer.
    #[error("failed to create namespace {name}: {}", source.text())]
    Call {
        /// Its name.
        name: String,
        /// Why not.
        source: CallError,
    },
    /// The server refused.
    #[error("failed to create namespace {name}: answered with {code} {message}")]
    Refused {
        /// Its name.
        name: String,
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
}

/// `vmk-<run>-<id>`, lower case.
pub fn name(run: &str, scenario: &ScenarioId) -> String {
    format!("vmk-{run}-{scenario}").to_ascii_lowercase()
}

/// Makes it and waits until pods can be made in it.
pub async fn create(
    wire: &Wire,
    name: String,
    labels: &Value,
) -> Result<Namespace, NamespaceError> {
    let mut labels = labels.clone();
    if let Some(labels) = labels.as_object_mut() {
        // Helper pods are privileged; clusters that enforce a stricter default would refuse them.
        labels.insert(
            "pod-security.kubernetes.io/enforce".to_owned(),
            "privileged".into(),
        );
    }
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let call = Call::new(Method::POST, "/api/v1/namespaces").with_body(Content::Json, body);
    let reply = patiently(wire, &call).await;
    let reply = reply.map_err(|source| NamespaceError::Call {
        name: name.clone(),
        source,
    })?;
    let uid = reply.body.pointer("/metadata/uid").and_then(Value::as_str);
    let (true, Some(uid)) = (reply.is_success(), uid) else {
        return Err(NamespaceError::Refused {
            name,
            code: reply.code,
            message: reply.message(),
        });
    };
    if let Some(kind) = kinds::find("ServiceAccount") {
        let scope = Scope::one(kind, &name, "default");
        // Without it pods are refused for a moment; the platform's controllers try again, so going on is right.
        until(
            wire,
            scope,
            conformance_journal::Clock::start(),
            ACCOUNT,
            |_, _| Some(()),
        )
        .await;
    }
    Ok(Namespace {
        uid: uid.to_owned(),
        name,
    })
}

/// Deletes it and waits. Gives what is left: nothing, most of the time.
pub async fn delete(wire: &Wire, namespace: &Namespace, limit: Duration) -> Vec<String> {
    let path = format!("/api/v1/namespaces/{}", namespace.name);
    let call = delete_call(path.clone(), Some(&namespace.uid), Map::new());
    match patiently(wire, &call).await {
        Ok(reply) if reply.is_success() || reply.code == 404 || reply.code == 409 => {}
        Ok(reply) => {
            return vec![format!(
                "namespace {}: {} {}",
                namespace.name,
                reply.code,
                reply.message()
            )];
        }
        Err(error) => return vec![format!("namespace {}: {}", namespace.name, error.text())],
    }
    if gone(wire, &path, &namespace.uid, limit).await {
        return Vec::new();
    }
    let mut left = blockers(wire, &namespace.name).await;
    if left.is_empty() {
        left.push(format!(
            "namespace {} is still terminating after {limit:?}",
            namespace.name
        ));
    }
    left
}

/// Asks now and then: a namespace that vanishes is not worth a watch of a cluster-wide kind.
async fn gone(wire: &Wire, path: &str, uid: &str, limit: Duration) -> bool {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(1));
    let deadline = tokio::time::Instant::now() + limit;
    loop {
        if let Ok(reply) = wire.call(&Call::get(path)).await {
            let found = reply.body.pointer("/metadata/uid").and_then(Value::as_str);
            if reply.code == 404 || (reply.is_success() && found != Some(uid)) {
                return true;
            }
        }
        if tokio::time::Instant::now() >= deadline {
            return false;
        }
        backoff.pause().await;
    }
}

/// Objects that are still there, each with its finalizers.
async fn blockers(wire: &Wire, namespace: &str) -> Vec<String> {
    let mut found = Vec::new();
    for kind in kinds::all().filter(|kind| kind.namespaced && kind.kind != "Event") {
        let Ok(reply) = wire.call(&Call::get(kind.collection_path(namespace))).await else {
            continue;
        };
        let items = reply.body.get("items").and_then(Value::as_array);
        found.extend(
            items
                .into_iter()
                .flatten()
                .map(|item| describe(kind.kind, namespace, item)),
        );
    }
    found
}

fn describe(kind: &str, namespace: &str, object: &Value) -> String {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let name = text("/metadata/name").unwrap_or("?");
    let mut line = format!("{kind} {namespace}/{name}");
    if let Some(since) = text("/metadata/deletionTimestamp") {
        line.push_str(&format!(" deleting since {since}"));
    }
    let finalizers = object
        .pointer("/metadata/finalizers")
        .and_then(Value::as_array);
    let finalizers: Vec<&str> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if !finalizers.is_empty() {
        line.push_str(&format!(" held by {}", finalizers.join(", ")));
    }
    line
}

/// Tries again while the server cannot be reached, for a while.
async fn patiently(wire: &Wire, call: &Call) -> Result<Reply, CallError> {
    let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
    let began = tokio::time::Instant::now();
    loop {
        match wire.call(call).await {
            Err(CallError::Unreachable(_)) if began.elapsed() < OUTAGE => backoff.pause().await,
            // Its starting server answers before it can authorise.
            Ok(reply) if matches!(reply.code, 429 | 503) && began.elapsed() < OUTAGE => {
                backoff.pause().await
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_and_short_enough() {
        let name = name("261201-014546-ab12", &"VM-LIFE-0007".parse().unwrap());
        assert_eq!(name, "vmk-261201-014546-ab12-vm-life-0007");
        assert!(name.len() <= 63);
    }

    #[test]
    fn a_blocker_is_named_with_what_holds_it() {
        let object = json!({"metadata": {"name": "vm", "deletionTimestamp": "t", "finalizers": ["a/b", "c/d"]}});
        assert_eq!(
            describe("VirtualMachine", "ns", &object),
            "VirtualMachine ns/vm deleting since t held by a/b, c/d"
        );
    }
}
