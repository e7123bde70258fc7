//! The VM's status: one word for people, conditions for programs, both mirrored from the VMI.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use kubevirt_api::{
    names,
    v1::{
        Condition, RunStrategy, VirtualMachine, VirtualMachineInstance,
        VirtualMachineInstancePhase as Phase, VirtualMachineStartFailure, VirtualMachineStatus,
        VolumeSnapshotStatus, condition,
    },
};

use super::{
    backoff,
    observe::{Observed, phase},
    requests::Requests,
};

/// Conditions that are the VM's own; all others are copies.
const OWN: [&str; 4] = [
    "Ready",
    FAILURE,
    "RestartRequired",
    "ManualRecoveryRequired",
];
const FAILURE: &str = "Failure";

/// What the status tells of, beside what was observed.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) strategy: RunStrategy,
    pub(super) requests: Requests,
    pub(super) start_failure: Option<VirtualMachineStartFailure>,
    /// A VMI is being made right now.
    pub(super) creating: bool,
    /// The VMI is being deleted right now.
    pub(super) deleting: bool,
    /// A start is due but must wait: the strategy does not count as carried out yet.
    pub(super) start_due: bool,
    /// What went wrong: reason and message.
    pub(super) failure: Option<(&'static str, String)>,
}

/// The whole status.
pub(super) fn status(observed: &Observed, story: Story) -> VirtualMachineStatus {
    let old = observed.vm.status.clone().unwrap_or_default();
    let vmi = observed.vmi.as_ref();
    let mut status = VirtualMachineStatus {
        printable_status: Some(word(observed, &story).to_owned()),
        created: vmi.map(|_| true),
        ready: vmi.and_then(|vmi| is_true(vmi, "Ready").then_some(true)),
        run_strategy: recorded_strategy(&old, vmi, &story),
        conditions: Some(conditions(observed, &story)),
        state_change_requests: story.requests.into_status(),
        start_failure: story.start_failure,
        volume_snapshot_statuses: snapshot_statuses(&observed.vm),
        ..old
    };
    if let Some(vmi) = vmi {
        status.desired_generation = observed.vm.metadata.generation;
        status.observed_generation = made_from(vmi);
    }
    status
}

/// The status with nothing new but a failure.
pub(super) fn with_failure(
    vm: &VirtualMachine,
    reason: &str,
    message: &str,
    now: &Time,
) -> VirtualMachineStatus {
    let mut status = vm.status.clone().unwrap_or_default();
    let conditions = status.conditions.get_or_insert_default();
    condition::set(
        conditions,
        Condition::new(FAILURE, true, reason, message),
        now,
    );
    status
}

/// Recorded once a VMI was made, and kept up to date from then on.
fn recorded_strategy(
    old: &VirtualMachineStatus,
    vmi: Option<&VirtualMachineInstance>,
    story: &Story,
) -> Option<RunStrategy> {
    let counts = vmi.is_some() || story.creating || old.run_strategy.is_some();
    if counts && !story.start_due {
        Some(story.strategy.clone())
    } else {
        old.run_strategy.clone()
    }
}

fn made_from(vmi: &VirtualMachineInstance) -> Option<i64> {
    vmi.annotations()
        .get(names::ANNOTATION_VM_GENERATION)
        .and_then(|text| text.parse().ok())
}

/// The first rule that fits, in the order that KubeVirt documents.
fn word(observed: &Observed, story: &Story) -> &'static str {
    if observed.vm.metadata.deletion_timestamp.is_some() {
        return "Terminating";
    }
    let Some(vmi) = &observed.vmi else {
        return word_without_vmi(story);
    };
    let leaving = vmi.metadata.deletion_timestamp.is_some() || story.deleting;
    match phase(vmi) {
        Phase::Succeeded | Phase::Failed => word_when_ended(story),
        _ if leaving => "Stopping",
        Phase::Running if is_true(vmi, "Paused") => "Paused",
        Phase::Running => "Running",
        Phase::Unset | Phase::Pending | Phase::Scheduling | Phase::Scheduled => {
            word_while_starting(vmi)
        }
        Phase::WaitingForSync if story.strategy == RunStrategy::WaitAsReceiver => {
            "WaitingForReceiver"
        }
        Phase::WaitingForSync | Phase::Unknown => "Unknown",
    }
}

fn word_without_vmi(story: &Story) -> &'static str {
    match story.strategy {
        _ if story.creating => "Starting",
        RunStrategy::WaitAsReceiver => "WaitingForReceiver",
        _ => word_when_ended(story),
    }
}

fn word_when_ended(story: &Story) -> &'static str {
    let failing = backoff::has_failed(story.start_failure.as_ref());
    if failing && backoff::is_kept(&story.strategy) {
        "CrashLoopBackOff"
    } else {
        "Stopped"
    }
}

fn word_while_starting(vmi: &VirtualMachineInstance) -> &'static str {
    match refusal(vmi, "Synchronized") {
        Some("FailedPvcNotFound") => return "ErrorPvcNotFound",
        Some("ErrImagePull") => return "ErrImagePull",
        Some("ImagePullBackOff") => return "ImagePullBackOff",
        _ => {}
    }
    match refusal(vmi, "PodScheduled") {
        Some("Unschedulable") => "ErrorUnschedulable",
        _ => "Starting",
    }
}

/// The reason of a condition that is false.
fn refusal<'a>(vmi: &'a VirtualMachineInstance, type_: &str) -> Option<&'a str> {
    let condition = condition::find(vmi_conditions(vmi), type_)?;
    (condition.status == "False")
        .then_some(condition.reason.as_deref())
        .flatten()
}

fn is_true(vmi: &VirtualMachineInstance, type_: &str) -> bool {
    condition::find(vmi_conditions(vmi), type_).is_some_and(Condition::is_true)
}

fn vmi_conditions(vmi: &VirtualMachineInstance) -> &[Condition] {
    vmi.status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default()
}

fn conditions(observed: &Observed, story: &Story) -> Vec<Condition> {
    let old = observed
        .vm
        .status
        .as_ref()
        .and_then(|s| s.conditions.clone());
    let mut all = old.unwrap_or_default();
    match &observed.vmi {
        None => {
            let ready = Condition::new("Ready", false, "VMINotExists", "VMI does not exist");
            condition::set(&mut all, ready, &observed.now);
            condition::remove(&mut all, "RestartRequired");
        }
        Some(vmi) => mirror(&mut all, vmi_conditions(vmi), &observed.now),
    }
    match &story.failure {
        Some((reason, message)) => {
            let failure = Condition::new(FAILURE, true, reason, message);
            condition::set(&mut all, failure, &observed.now);
        }
        None => {
            condition::remove(&mut all, FAILURE);
        }
    }
    all
}

/// Copies the VMI's conditions as they are, and drops copies of those that it lost.
fn mirror(all: &mut Vec<Condition>, theirs: &[Condition], now: &Time) {
    if condition::find(theirs, "Ready").is_none() {
        let text = "VMI is missing the Ready condition";
        let ready = Condition::new("Ready", false, "VMIConditionMissing", text);
        condition::set(all, ready, now);
    }
    all.retain(|c| OWN.contains(&&*c.type_) || condition::find(theirs, &c.type_).is_some());
    for copy in theirs {
        match all.iter_mut().find(|c| c.type_ == copy.type_) {
            Some(mine) => mine.clone_from(copy),
            None => all.push(copy.clone()),
        }
    }
}

/// Volumes whose kind can never be part of a snapshot. Claims need a storage class to tell.
fn snapshot_statuses(vm: &VirtualMachine) -> Option<Vec<VolumeSnapshotStatus>> {
    let volumes = vm.spec.template.spec.as_ref()?.volumes.as_ref()?;
    let statuses: Vec<_> = volumes
        .iter()
        .filter(|v| v.persistent_volume_claim.is_none() && v.data_volume.is_none())
        .map(|volume| VolumeSnapshotStatus {
            name: volume.name.clone(),
            enabled: false,
            reason: Some(format!(
                "Snapshot is not supported for this volumeSource type [{}]",
                volume.name
            )),
        })
        .collect();
    (!statuses.is_empty()).then_some(statuses)
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
