//! What the handler writes into a VMI: a merge patch of what changed, tied to the version that was read.
//! virt-controller writes the same object; the version makes the slower of the two read again.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kubevirt_api::{
    names::ANNOTATION_MACHINE_BACKEND,
    v1::{
        Condition, Machine, PhaseTransitionTimestamp, VirtualMachineInstance,
        VirtualMachineInstanceNetworkInterface as InterfaceStatus,
        VirtualMachineInstancePhase as VmiPhase, VirtualMachineInstanceStatus, condition,
    },
};
use serde_json::{Map, Value, json};
use virt_cmd::DomainState;

use super::decide::Outcome;

/// Reason of `Synchronized` while the launcher cannot do what it was told.
const SYNC_FAILED: &str = "Synchronizing with the Domain failed.";
/// Name of the pod network's interface in the pod.
const POD_INTERFACE: &str = "eth0";

/// Everything that a status is made from.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// What happened.
    pub outcome: &'a Outcome,
    /// What the launcher says of its machine.
    pub machine: Option<&'a DomainState>,
    /// The pod's address.
    pub pod_ip: Option<&'a str>,
    /// Why the domain could not be handed over.
    pub sync_error: Option<&'a str>,
}

/// The patch that makes the VMI say so; `None` when it does already.
pub fn patch(vmi: &VirtualMachineInstance, report: Report<'_>, now: &Time) -> Option<Value> {
    let old = vmi.status.clone().unwrap_or_default();
    let status = changed_keys(&old, &next_status(vmi, &old, report, now));
    let annotations = annotations(vmi, report);
    if status.is_empty() && annotations.is_empty() {
        return None;
    }
    let mut metadata = json!({"resourceVersion": vmi.metadata.resource_version});
    if !annotations.is_empty() {
        metadata["annotations"] = Value::Object(annotations);
    }
    let mut patch = json!({"metadata": metadata});
    if !status.is_empty() {
        patch["status"] = Value::Object(status);
    }
    Some(patch)
}

fn next_status(
    vmi: &VirtualMachineInstance,
    old: &VirtualMachineInstanceStatus,
    report: Report<'_>,
    now: &Time,
) -> VirtualMachineInstanceStatus {
    let mut status = old.clone();
    let mut conditions = status.conditions.take().unwrap_or_default();
    let mut sync_error = report.sync_error;
    match report.outcome {
        Outcome::Preparing => {}
        Outcome::Up { paused } => {
            set_phase(&mut status, VmiPhase::Running, now);
            set_paused(&mut conditions, *paused, now);
            if let Some(machine) = report.machine.filter(|machine| !machine.machine.is_empty()) {
                status.machine = Some(Machine {
                    type_: machine.machine.clone(),
                });
            }
            if let Some(ip) = report.pod_ip {
                let interfaces = interfaces(vmi, old, ip);
                status.interfaces = (!interfaces.is_empty()).then_some(interfaces);
            }
        }
        Outcome::Ended(end) => {
            let phase = if end.success {
                VmiPhase::Succeeded
            } else {
                VmiPhase::Failed
            };
            set_phase(&mut status, phase, now);
            set_paused(&mut conditions, false, now);
            sync_error = sync_error.or(end.start_error.as_deref());
        }
    }
    if !matches!(report.outcome, Outcome::Ended(_)) {
        for migratable in migratability(vmi) {
            condition::set(&mut conditions, migratable, now);
        }
    }
    set_synchronized(&mut conditions, sync_error, now);
    status.conditions = (!conditions.is_empty()).then_some(conditions);
    status
}

fn set_phase(status: &mut VirtualMachineInstanceStatus, phase: VmiPhase, now: &Time) {
    if status.phase == Some(phase) {
        return;
    }
    status.phase = Some(phase);
    let entries = status.phase_transition_timestamps.get_or_insert_default();
    if entries.iter().all(|entry| entry.phase != phase) {
        entries.push(PhaseTransitionTimestamp {
            phase,
            phase_transition_timestamp: now.clone(),
        });
    }
}

/// A machine that runs has no `Paused` condition at all.
fn set_paused(conditions: &mut Vec<Condition>, paused: bool, now: &Time) {
    if !paused {
        condition::remove(conditions, "Paused");
    } else if condition::find(conditions, "Paused").is_none_or(|c| !c.is_true()) {
        let mut next = Condition::new("Paused", true, "PausedByUser", "VMI was paused by user");
        next.last_probe_time = Some(now.clone());
        condition::set(conditions, next, now);
    }
}

/// Only takes away what the handler itself set: virt-controller has reasons of its own.
fn set_synchronized(conditions: &mut Vec<Condition>, error: Option<&str>, now: &Time) {
    if let Some(error) = error {
        let failed = Condition::new("Synchronized", false, SYNC_FAILED, error);
        condition::set(conditions, failed, now);
    } else if condition::find(conditions, "Synchronized")
        .is_some_and(|c| c.reason.as_deref() == Some(SYNC_FAILED))
    {
        condition::remove(conditions, "Synchronized");
    }
}

/// This version moves no machine; the reason tells whether the original could have.
fn migratability(vmi: &VirtualMachineInstance) -> [Condition; 2] {
    let interfaces = vmi.spec.domain.devices.interfaces.as_deref();
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let on_pod_network = |name: &str| {
        networks
            .iter()
            .any(|network| network.name == name && network.pod.is_some())
    };
    let stuck = interfaces
        .unwrap_or_default()
        .iter()
        .any(|interface| interface.masquerade.is_none() && on_pod_network(&interface.name));
    let (reason, message) = if stuck {
        (
            "InterfaceNotLiveMigratable",
            "cannot migrate VMI which does not use masquerade or a migratable plugin to connect to the pod network",
        )
    } else {
        (
            "MigrationNotSupported",
            "this version of the system does not migrate machines",
        )
    };
    [
        Condition::new("LiveMigratable", false, reason, message),
        Condition::new(
            "StorageLiveMigratable",
            false,
            "NotMigratable",
            &format!("{reason}: {message}"),
        ),
    ]
}

/// The interface on the pod network carries the pod's address; others stay as they were.
fn interfaces(
    vmi: &VirtualMachineInstance,
    old: &VirtualMachineInstanceStatus,
    pod_ip: &str,
) -> Vec<InterfaceStatus> {
    let mut all = old.interfaces.clone().unwrap_or_default();
    let networks = vmi.spec.networks.as_deref().unwrap_or_default();
    let Some(network) = networks.iter().find(|network| network.pod.is_some()) else {
        return all;
    };
    let known = all
        .iter()
        .position(|status| status.name.as_deref() == Some(&network.name));
    let at = known.unwrap_or_else(|| {
        all.push(InterfaceStatus {
            name: Some(network.name.clone()),
            ..InterfaceStatus::default()
        });
        all.len() - 1
    });
    if let Some(status) = all.get_mut(at) {
        status.ip_address = Some(pod_ip.to_owned());
        status.ip_addresses = Some(vec![pod_ip.to_owned()]);
        status.info_source = Some("domain".to_owned());
        status.link_state = Some("up".to_owned());
        status.pod_interface_name = Some(POD_INTERFACE.to_owned());
        status.queue_count = Some(1);
    }
    all
}

fn annotations(vmi: &VirtualMachineInstance, report: Report<'_>) -> Map<String, Value> {
    let mut annotations = Map::new();
    if let Some(backend) = report.machine.and_then(backend) {
        let old = vmi.metadata.annotations.as_ref();
        if old.and_then(|all| all.get(ANNOTATION_MACHINE_BACKEND)) != Some(&backend) {
            annotations.insert(ANNOTATION_MACHINE_BACKEND.to_owned(), backend.into());
        }
    }
    annotations
}

/// The back end as users know it: `vmm`, `qemu-kvm` or `qemu-tcg`.
fn backend(machine: &DomainState) -> Option<String> {
    match machine.backend.as_str() {
        "" => None,
        "qemu" if !machine.accelerator.is_empty() => Some(format!("qemu-{}", machine.accelerator)),
        other => Some(other.to_owned()),
    }
}

/// The keys whose values differ, with the new value; null takes a key away.
fn changed_keys(
    old: &VirtualMachineInstanceStatus,
    new: &VirtualMachineInstanceStatus,
) -> Map<String, Value> {
    let object = |status: &VirtualMachineInstanceStatus| match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    };
    let (old, new) = (object(old), object(new));
    let removed = old
        .keys()
        .filter(|key| !new.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let changed = new
        .iter()
        .filter(|(key, value)| old.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.clone()));
    removed.chain(changed).collect()
}

#[cfg(test)]
#[path = "status/tests.rs"]
mod tests;
