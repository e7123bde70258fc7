//! A launcher pod as far as decisions care.

use k8s_openapi::{
    api::core::v1::{ContainerStatus, Pod, PodCondition, PodStatus},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::ResourceExt as _;
use kubevirt_api::{
    names,
    v1::{Condition, condition::Condition as VmiCondition},
};

/// Name of the container that runs the machine.
pub(super) const COMPUTE: &str = "compute";
/// Annotation with the launcher's own share of memory, in bytes.
pub(super) const ANNOTATION_OVERHEAD: &str = "kubevirt.io/memory-overhead-bytes";

/// A launcher pod as far as decisions care.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PodFacts {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) created: Option<Time>,
    /// Node; empty until it is scheduled.
    pub(super) node: String,
    /// Value of the node label, which follows the VMI's.
    pub(super) node_label: Option<String>,
    /// Somebody deleted it.
    pub(super) deleted: bool,
    /// It ended or will end.
    pub(super) going_down: bool,
    /// The launcher runs. It need not be ready: a probe may wait for the guest.
    pub(super) launcher_runs: bool,
    /// Why an image cannot be pulled: reason and message.
    pub(super) image_error: Option<(String, String)>,
    /// Why no node takes it.
    pub(super) unscheduled: Option<Condition>,
    /// Whether it is ready.
    pub(super) ready: Option<Condition>,
    /// The gate that is closed while the machine is paused.
    pub(super) unpaused: Option<bool>,
    pub(super) qos_class: Option<String>,
    pub(super) image: Option<String>,
    pub(super) overhead: Option<i64>,
}

impl PodFacts {
    pub(super) fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let ended = matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"));
        let deleted = pod.metadata.deletion_timestamp.is_some();
        let spec = pod.spec.as_ref();
        let compute = spec.and_then(|s| s.containers.iter().find(|c| c.name == COMPUTE));
        Self {
            name: pod.name_any(),
            uid: pod.uid().unwrap_or_default(),
            created: pod.creation_timestamp(),
            node: spec.and_then(|s| s.node_name.clone()).unwrap_or_default(),
            node_label: pod.labels().get(names::LABEL_NODE_NAME).cloned(),
            deleted,
            going_down: deleted || ended,
            launcher_runs: !deleted && launcher_runs(&status),
            image_error: image_error(&status),
            unscheduled: find(&status, "PodScheduled").filter(|c| c.status == "False"),
            ready: find(&status, "Ready"),
            unpaused: find(&status, names::CONDITION_UNPAUSED).map(|c| c.is_true()),
            qos_class: status.qos_class,
            image: compute.and_then(|c| c.image.clone()),
            overhead: pod
                .annotations()
                .get(ANNOTATION_OVERHEAD)
                .and_then(|bytes| bytes.parse().ok()),
        }
    }
}

/// The pod that counts: the newest that is not going down, else the newest.
pub(super) fn current(pods: &[PodFacts]) -> Option<&PodFacts> {
    pods.iter()
        .max_by_key(|pod| (!pod.going_down, pod.created.clone(), pod.uid.clone()))
}

fn launcher_runs(status: &PodStatus) -> bool {
    let mut containers = status.container_statuses.iter().flatten();
    status.phase.as_deref() == Some("Running")
        && containers.all(|container| {
            if container.name == COMPUTE {
                is_running(container)
            } else {
                container.ready
            }
        })
}

fn is_running(container: &ContainerStatus) -> bool {
    container
        .state
        .as_ref()
        .is_some_and(|s| s.running.is_some())
}

fn image_error(status: &PodStatus) -> Option<(String, String)> {
    let init = status.init_container_statuses.iter().flatten();
    let containers = init.chain(status.container_statuses.iter().flatten());
    containers
        .filter_map(|container| container.state.as_ref()?.waiting.as_ref())
        .find_map(|waiting| {
            let reason = waiting.reason.clone()?;
            let counts = matches!(reason.as_str(), "ErrImagePull" | "ImagePullBackOff");
            counts.then(|| (reason, waiting.message.clone().unwrap_or_default()))
        })
}

fn find(status: &PodStatus, type_: &str) -> Option<Condition> {
    let mut all = status.conditions.iter().flatten();
    all.find(|c| c.type_ == type_).map(convert)
}

fn convert(condition: &PodCondition) -> VmiCondition {
    let text = |t: &Option<String>| t.clone().filter(|t| !t.is_empty());
    VmiCondition {
        last_probe_time: condition.last_probe_time.clone(),
        last_transition_time: condition.last_transition_time.clone(),
        message: text(&condition.message),
        reason: text(&condition.reason),
        status: condition.status.clone(),
        type_: condition.type_.clone(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn facts(metadata: Value, status: Value) -> PodFacts {
        let pod = serde_json::from_value(json!({
            "metadata": metadata, "spec": {"nodeName": "n1", "containers": [
                {"name": "compute", "image": "launcher:1"}
            ]},
            "status": status
        }));
        PodFacts::of(&pod.unwrap())
    }

    fn compute(state: Value) -> Value {
        json!([{"name": "compute", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}])
    }

    #[rstest]
    #[case::runs_though_not_ready(json!({}), "Running", json!({"running": {}}), true, false)]
    #[case::waits(json!({}), "Pending", json!({"waiting": {"reason": "ContainerCreating"}}), false, false)]
    #[case::ended(json!({}), "Succeeded", json!({"terminated": {"exitCode": 0}}), false, true)]
    #[case::failed(json!({}), "Failed", json!({"terminated": {"exitCode": 2}}), false, true)]
    #[case::launcher_died_first(json!({}), "Running", json!({"terminated": {"exitCode": 2}}), false, false)]
    #[case::deleted(
        json!({"deletionTimestamp": "2026-12-01T00:00:00Z"}), "Running", json!({"running": {}}), false, true
    )]
    fn life(
        #[case] metadata: Value,
        #[case] phase: &str,
        #[case] state: Value,
        #[case] runs: bool,
        #[case] going_down: bool,
    ) {
        let status = json!({"phase": phase, "containerStatuses": compute(state)});
        let facts = facts(metadata, status);
        assert_eq!((facts.launcher_runs, facts.going_down), (runs, going_down));
    }

    #[rstest]
    #[case("ErrImagePull", true)]
    #[case("ImagePullBackOff", true)]
    #[case("InvalidImageName", false)]
    #[case("ContainerCreating", false)]
    fn image_errors(#[case] reason: &str, #[case] counts: bool) {
        let state = json!({"waiting": {"reason": reason, "message": "m"}});
        let status = json!({"phase": "Pending", "containerStatuses": compute(state)});
        assert_eq!(facts(json!({}), status).image_error.is_some(), counts);
    }

    #[test]
    fn the_newest_pod_that_lives_counts() {
        let pod = |uid: &str, second: u8, going_down: bool| PodFacts {
            uid: uid.to_owned(),
            created: Some(Time(
                format!("2026-12-01T00:00:0{second}Z").parse().unwrap(),
            )),
            going_down,
            ..PodFacts::default()
        };
        let pods = [
            pod("old", 1, false),
            pod("dead", 3, true),
            pod("new", 2, false),
        ];
        assert_eq!(current(&pods).unwrap().uid, "new");
        assert_eq!(current(&pods[1..2]).unwrap().uid, "dead");
    }
}
