//! The VMI's status as the pod implies it: phase, node, conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::{
    names,
    quantity::Quantity,
    v1::{
        Condition, PhaseTransitionTimestamp, VirtualMachineInstance,
        VirtualMachineInstancePhase as Phase, VirtualMachineInstanceStatus, condition,
    },
};

use super::{
    observe::Observed,
    pod::{self, PodFacts},
};

const SYNCHRONIZED: &str = "Synchronized";
const POD_SCHEDULED: &str = "PodScheduled";

/// Where the VMI is in its life.
pub(super) fn phase(vmi: &VirtualMachineInstance) -> Phase {
    vmi.status
        .as_ref()
        .and_then(|s| s.phase)
        .unwrap_or_default()
}

/// Whether the VMI would end or go because no pod is seen. One that has had none yet needs no second
/// look: the name of its pod keeps it from getting two.
pub(super) fn absence_of_pods_matters(vmi: &VirtualMachineInstance) -> bool {
    let had_one = matches!(
        phase(vmi),
        Phase::Scheduling | Phase::Scheduled | Phase::Running
    );
    had_one || vmi.metadata.deletion_timestamp.is_some()
}

/// Whether the machine is paused.
pub(super) fn is_paused(vmi: &VirtualMachineInstance) -> bool {
    vmi.status
        .as_ref()
        .and_then(|s| s.conditions.as_deref())
        .and_then(|all| condition::find(all, "Paused"))
        .is_some_and(Condition::is_true)
}

/// The phase that follows from the pod. Phases of the running machine are virt-handler's to write,
/// except that no machine outlives its pod.
pub(super) fn next_phase(phase: Phase, leaving: bool, pod: Option<&PodFacts>) -> Phase {
    match (phase, pod) {
        (Phase::Unset | Phase::Pending, None) if leaving => Phase::Failed,
        (Phase::Unset | Phase::Pending, None) => Phase::Pending,
        (Phase::Unset | Phase::Pending, Some(_)) => Phase::Scheduling,
        (Phase::Scheduling, Some(pod)) if pod.going_down => Phase::Failed,
        (Phase::Scheduling, Some(pod)) if pod.launcher_runs && !leaving => Phase::Scheduled,
        (Phase::Scheduling | Phase::Scheduled | Phase::Running, None) => Phase::Failed,
        (other, _) => other,
    }
}

/// The VMI as it should be written.
pub(super) fn updated(observed: &Observed) -> VirtualMachineInstance {
    let mut vmi = observed.vmi.clone();
    let pod = pod::current(&observed.pods);
    let before = phase(&vmi);
    let leaving = vmi.metadata.deletion_timestamp.is_some();
    let next = next_phase(before, leaving, pod);
    let status = vmi.status.get_or_insert_default();
    enter(status, next, &observed.now);
    let conditions = status.conditions.get_or_insert_default();
    if !observed.silent_on_readiness {
        set_ready(conditions, before, next, pod, &observed.now);
    }
    if matches!(before, Phase::Unset | Phase::Pending | Phase::Scheduling) {
        set_scheduling_trouble(conditions, pod, &observed.now);
    }
    if conditions.is_empty() {
        status.conditions = None;
    }
    set_pod_fields(status, next, &observed.pods);
    if let (Phase::Scheduling, Phase::Scheduled, Some(pod)) = (before, next, pod) {
        status.node_name = Some(pod.node.clone());
        status.migration_transport = Some("Unix".to_owned());
        let labels = vmi.metadata.labels.get_or_insert_default();
        labels.insert(names::LABEL_NODE_NAME.to_owned(), pod.node.clone());
    }
    vmi
}

/// The VMI with a note that its pod could not be made.
pub(super) fn with_failed_creation(observed: &Observed, message: &str) -> VirtualMachineInstance {
    let mut vmi = updated(observed);
    let status = vmi.status.get_or_insert_default();
    let conditions = status.conditions.get_or_insert_default();
    let note = Condition::new(SYNCHRONIZED, false, "FailedCreate", message);
    condition::set(conditions, note, &observed.now);
    condition::set(conditions, no_pod(), &observed.now);
    vmi
}

fn enter(status: &mut VirtualMachineInstanceStatus, phase: Phase, now: &Time) {
    status.phase = Some(phase);
    let history = status.phase_transition_timestamps.get_or_insert_default();
    if history.iter().all(|entry| entry.phase != phase) {
        history.push(PhaseTransitionTimestamp {
            phase,
            phase_transition_timestamp: now.clone(),
        });
    }
}

fn no_pod() -> Condition {
    let text = "virt-launcher pod has not yet been scheduled";
    Condition::new("Ready", false, "PodNotExists", text)
}

/// Nothing is said of readiness before the first pod was seen.
fn set_ready(
    conditions: &mut Vec<Condition>,
    before: Phase,
    next: Phase,
    pod: Option<&PodFacts>,
    now: &Time,
) {
    let ready = match pod {
        None if matches!(before, Phase::Unset | Phase::Pending) && !next.is_final() => return,
        None => no_pod(),
        Some(pod) if pod.going_down => {
            let text = "virt-launcher pod is terminating";
            Condition::new("Ready", false, "PodTerminating", text)
        }
        Some(_) if next != Phase::Running => {
            let text = "Guest VM is not reported as running";
            Condition::new("Ready", false, "GuestNotRunning", text)
        }
        Some(pod) => pod.ready.clone().unwrap_or_else(|| {
            let text = "virt-launcher pod is missing the Ready condition";
            Condition::new("Ready", false, "PodConditionMissing", text)
        }),
    };
    condition::set(conditions, ready, now);
}

/// Trouble between the pod's creation and its start; gone when it is over.
fn set_scheduling_trouble(conditions: &mut Vec<Condition>, pod: Option<&PodFacts>, now: &Time) {
    let Some(pod) = pod else { return };
    match &pod.image_error {
        Some((reason, message)) => {
            let trouble = Condition::new(SYNCHRONIZED, false, reason, message);
            condition::set(conditions, trouble, now);
        }
        None => {
            condition::remove(conditions, SYNCHRONIZED);
        }
    }
    match &pod.unscheduled {
        Some(trouble) => {
            condition::set(conditions, trouble.clone(), now);
        }
        None => {
            condition::remove(conditions, POD_SCHEDULED);
        }
    }
}

fn set_pod_fields(status: &mut VirtualMachineInstanceStatus, next: Phase, pods: &[PodFacts]) {
    let active = pods.iter().map(|pod| (pod.uid.clone(), pod.node.clone()));
    status.active_pods = (!pods.is_empty()).then(|| active.collect());
    let Some(pod) = pod::current(pods) else {
        if next.is_final() {
            status.launcher_container_image_version = None;
        }
        return;
    };
    status
        .launcher_container_image_version
        .clone_from(&pod.image);
    if status.qos_class.is_none() {
        status.qos_class.clone_from(&pod.qos_class);
    }
    if let Some(bytes) = pod.overhead {
        let memory = status.memory.get_or_insert_default();
        memory.memory_overhead = Some(Quantity::from_bytes(bytes).to_wire());
    }
}
