//! A scenario that changes the cluster leaves it as it was, whatever happened in it: the platform's own object gets
//! its old spec back, and the next scenario waits until the platform says that it is ready again.

use std::time::Duration;

use conformance_scenario::{kinds, spec::Platform};
use http::Method;
use serde_json::{Value, json};

use crate::{
    watch::{Scope, until},
    wire::{Call, CallError, Content, Wire, path},
};

/// The platform's own object as it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    uid: String,
    spec: Value,
}

/// A spec that could not be put back. Later scenarios would run on a changed cluster.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The server did not answer.
    #[error("no answer from the API server: {}", .0.text())]
    Call(#[from] CallError),
    /// The server refused.
    #[error("answered with {code} {message}")]
    Refused {
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The platform did not become ready again.
    #[error("the platform is not ready again after {0:?}")]
    NotReady(Duration),
}

/// Remembers the spec. Nothing when the platform has no such object.
pub async fn remember(wire: &Wire, platform: &Platform) -> Result<Option<Snapshot>, RestoreError> {
    let Some(place) = place(platform) else {
        return Ok(None);
    };
    let reply = wire.call(&Call::get(place)).await?;
    let uid = reply.body.pointer("/metadata/uid").and_then(Value::as_str);
    match uid {
        Some(uid) if reply.is_success() => {
            let spec = reply.body.get("spec").cloned().unwrap_or_default();
            Ok(Some(Snapshot {
                uid: uid.to_owned(),
                spec,
            }))
        }
        _ => Ok(None),
    }
}

/// Puts the spec back if it changed, and waits for the platform.
pub async fn restore(
    wire: &Wire,
    platform: &Platform,
    before: &Snapshot,
    limit: Duration,
) -> Result<(), RestoreError> {
    let Some(place) = place(platform) else {
        return Ok(());
    };
    let now = wire.call(&Call::get(&place)).await?;
    if now.body.get("spec") != Some(&before.spec) {
        let call = Call::new(Method::PATCH, &place).with_body(Content::JsonPatch, patch(before));
        let reply = wire.call(&call).await?;
        if !reply.is_success() {
            return Err(RestoreError::Refused {
                code: reply.code,
                message: reply.message(),
            });
        }
    }
    let Some(kind) = kinds::find(&platform.discovery.kind) else {
        return Ok(());
    };
    let scope = Scope::one(
        kind,
        &platform.discovery.namespace,
        &platform.discovery.name,
    );
    let ready = until(
        wire,
        scope,
        conformance_journal::Clock::start(),
        limit,
        |_, object| is_ready(object).then_some(()),
    );
    ready.await.ok_or(RestoreError::NotReady(limit))
}

/// The uid is tested: a namesake made in the meantime is not ours to change.
fn patch(before: &Snapshot) -> Value {
    json!([
        {"op": "test", "path": "/metadata/uid", "value": before.uid},
        {"op": "add", "path": "/spec", "value": before.spec},
    ])
}

/// An operator that tells no generation is believed by its phase alone.
fn is_ready(object: &Value) -> bool {
    let number = |pointer| object.pointer(pointer).and_then(Value::as_i64);
    let observed = number("/status/observedGeneration");
    let current = observed.is_none() || observed == number("/metadata/generation");
    current && object.pointer("/status/phase").and_then(Value::as_str) == Some("Deployed")
}

fn place(platform: &Platform) -> Option<String> {
    let kind = kinds::find(&platform.discovery.kind)?;
    Some(path::object(
        kind,
        &platform.discovery.namespace,
        &platform.discovery.name,
    ))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"metadata": {"generation": 2}, "status": {"phase": "Deployed", "observedGeneration": 2}}), true)]
    #[case(json!({"metadata": {"generation": 3}, "status": {"phase": "Deployed", "observedGeneration": 2}}), false)]
    #[case(json!({"metadata": {"generation": 2}, "status": {"phase": "Deploying", "observedGeneration": 2}}), false)]
    #[case(json!({"metadata": {"generation": 2}, "status": {"phase": "Deployed"}}), true)]
    #[case(json!({}), false)]
    fn readiness_is_phase_and_generation(#[case] object: Value, #[case] wanted: bool) {
        assert_eq!(is_ready(&object), wanted);
    }

    #[test]
    fn a_namesake_is_not_changed() {
        let patch = patch(&Snapshot {
            uid: "u".into(),
            spec: json!({"a": 1}),
        });
        assert_eq!(
            patch[0],
            json!({"op": "test", "path": "/metadata/uid", "value": "u"})
        );
    }
}
