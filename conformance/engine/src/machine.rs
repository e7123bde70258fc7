//! Makes the machine process of a VMI die without asking the platform: a short privileged pod beside it finds the
//! process by its pod's cgroup and kills it. Nothing here knows how the platform names or starts its processes.

use std::time::Duration;

use conformance_scenario::kinds;
use http::Method;
use serde_json::{Map, Value, json};

use crate::{
    manifest,
    stage::{Stage, delete_call},
    watch::{Scope, until},
    wire::{Call, CallError, Content, path},
};

/// The pod's image name in the platform's image map.
const IMAGE: &str = "virtmark";
/// How long pod and kill may take together.
pub const LIMIT: Duration = Duration::from_secs(60);

/// A machine that could not be killed.
#[derive(Debug, thiserror::Error)]
pub enum KillError {
    /// The server did not answer.
    #[error("no answer from the API server")]
    Call(#[from] CallError),
    /// The server refused.
    #[error("{what}: answered with {code} {message}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The platform names no image for the helper pod.
    #[error("the platform's image map has no \"{IMAGE}\"")]
    NoImage,
    /// No launcher pod, or none with a node.
    #[error("VMI {0} has no pod on a node")]
    NoPod(String),
    /// The helper did not finish.
    #[error("the helper pod did not finish within {0:?}")]
    Late(Duration),
    /// The helper finished without success.
    #[error("the helper pod failed: {0}")]
    Failed(String),
}

/// Kills the machine of this VMI and returns when it is dead.
pub async fn kill(stage: &Stage, step: &str, vmi: &str) -> Result<(), KillError> {
    let image = stage
        .shared
        .platform
        .images
        .get(IMAGE)
        .ok_or(KillError::NoImage)?;
    let place = find(stage, vmi).await?;
    let processes = stage
        .shared
        .platform
        .kill_machine
        .as_ref()
        .map(|recipe| recipe.processes.as_slice());
    let name = format!("virtmark-kill-{step}");
    let mut pod = helper(&name, &place, image, processes.unwrap_or_default());
    manifest::add_labels(&mut pod, &stage.labels());
    let pods = pods();
    let collection = pods.collection_path(&stage.namespace);
    let made = stage
        .ask(
            None,
            &Call::new(Method::POST, collection).with_body(Content::Json, pod),
        )
        .await?;
    if !made.is_success() {
        return Err(KillError::Refused {
            what: "create the helper pod",
            code: made.code,
            message: made.message(),
        });
    }
    let scope = Scope::one(pods, &stage.namespace, &name);
    let phase = until(
        &stage.shared.wire,
        scope,
        stage.log.clock(),
        LIMIT,
        |_, pod| finished(pod),
    )
    .await;
    let said = log_of(stage, &name).await;
    let uid = made.body.pointer("/metadata/uid").and_then(Value::as_str);
    let options = Map::from_iter([("gracePeriodSeconds".to_owned(), json!(0))]);
    stage
        .ask(
            None,
            &delete_call(path::object(pods, &stage.namespace, &name), uid, options),
        )
        .await?;
    match phase {
        Some(true) => Ok(()),
        Some(false) => Err(KillError::Failed(said)),
        None => Err(KillError::Late(LIMIT)),
    }
}

/// Where the machine is.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    node: String,
    pod_uid: String,
}

async fn find(stage: &Stage, vmi: &str) -> Result<Place, KillError> {
    let none = || KillError::NoPod(vmi.to_owned());
    let kind = kinds::find("VirtualMachineInstance").ok_or_else(none)?;
    let object = stage
        .ask(None, &Call::get(path::object(kind, &stage.namespace, vmi)))
        .await?;
    let uid = object
        .body
        .pointer("/metadata/uid")
        .and_then(Value::as_str)
        .ok_or_else(none)?;
    let selector = format!("kubevirt.io/created-by={uid}");
    let query = [("labelSelector", selector.as_str())];
    let list = stage
        .ask(
            None,
            &Call::get(path::with_query(
                &pods().collection_path(&stage.namespace),
                &query,
            )),
        )
        .await?;
    let items = list.body.get("items").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .find_map(place_of)
        .ok_or_else(none)
}

fn place_of(pod: &Value) -> Option<Place> {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str);
    if phase != Some("Running") || pod.pointer("/metadata/deletionTimestamp").is_some() {
        return None;
    }
    Some(Place {
        node: pod.pointer("/spec/nodeName")?.as_str()?.to_owned(),
        pod_uid: pod.pointer("/metadata/uid")?.as_str()?.to_owned(),
    })
}

/// The pod goes to the node by name: the scheduler has no say, and a cordoned node is no hindrance.
fn helper(name: &str, place: &Place, image: &str, processes: &[String]) -> Value {
    let mut command = vec![
        "/usr/bin/virtmark",
        "agent",
        "kill-machine",
        "--pod-uid",
        &place.pod_uid,
    ];
    for process in processes {
        command.extend(["--process", process]);
    }
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeName": place.node,
            "hostPID": true,
            "restartPolicy": "Never",
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{
                "name": "agent",
                "image": image,
                "imagePullPolicy": "IfNotPresent",
                "command": command,
                "securityContext": {"privileged": true, "runAsUser": 0},
            }],
        },
    })
}

fn finished(pod: &Value) -> Option<bool> {
    match pod.pointer("/status/phase")?.as_str()? {
        "Succeeded" => Some(true),
        "Failed" => Some(false),
        _ => None,
    }
}

async fn log_of(stage: &Stage, name: &str) -> String {
    let path = format!("{}/log", path::object(pods(), &stage.namespace, name));
    match stage.ask(None, &Call::get(path)).await {
        Ok(reply) => reply
            .body
            .as_str()
            .map_or_else(|| reply.body.to_string(), |text| text.trim().to_owned()),
        Err(error) => error.text(),
    }
}

fn pods() -> &'static kinds::KindInfo {
    const PODS: kinds::KindInfo = kinds::KindInfo {
        kind: "Pod",
        api_version: "v1",
        plural: "pods",
        namespaced: true,
    };
    kinds::find("Pod").unwrap_or(&PODS)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(json!({"spec": {"nodeName": "n"}, "metadata": {"uid": "u"}, "status": {"phase": "Running"}}), true)]
    #[case(json!({"spec": {"nodeName": "n"}, "metadata": {"uid": "u"}, "status": {"phase": "Succeeded"}}), false)]
    #[case(json!({"spec": {"nodeName": "n"}, "metadata": {"uid": "u", "deletionTimestamp": "t"}, "status": {"phase": "Running"}}), false)]
    #[case(json!({"metadata": {"uid": "u"}, "status": {"phase": "Running"}}), false)]
    fn only_a_living_pod_has_a_machine(#[case] pod: Value, #[case] wanted: bool) {
        assert_eq!(place_of(&pod).is_some(), wanted);
    }

    #[test]
    fn the_helper_is_pinned_to_the_node_and_sees_its_processes() {
        let place = Place {
            node: "node-1".into(),
            pod_uid: "1234".into(),
        };
        insta::assert_json_snapshot!(helper(
            "virtmark-kill-s3",
            &place,
            "registry/virtmark:v1",
            &["qemu".into()]
        ));
    }
}
