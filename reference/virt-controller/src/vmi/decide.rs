//! The state machine of a VMI as one pure function: what was observed in, what to do out.

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kubevirt_api::{
    names,
    v1::{VirtualMachineInstance, VirtualMachineInstancePhase as Phase},
};

use super::{
    launcher,
    observe::Observed,
    pod::{self, PodFacts},
    status,
};
use crate::finalizer;

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Make the launcher pod.
    CreatePod(Box<Pod>),
    /// Delete a launcher pod.
    DeletePod { name: String, uid: String },
    /// Open or close the readiness gate of a pod.
    SetGate {
        name: String,
        uid: String,
        paused: bool,
    },
    /// Write the VMI's node onto its pod.
    LabelPod {
        name: String,
        uid: String,
        node: String,
    },
    /// Write the VMI.
    Write(Box<VirtualMachineInstance>),
}

/// What to do, in order.
pub(super) type Plan = Vec<Step>;

/// Decides.
pub(super) fn decide(observed: &Observed) -> Plan {
    let vmi = &observed.vmi;
    let leaving = vmi.metadata.deletion_timestamp.is_some();
    let mut next = status::updated(observed);
    let mut plan = Plan::new();
    if leaving {
        plan.extend(observed.pods.iter().filter(|p| !p.deleted).map(delete));
    } else if needs_pod(observed) {
        if !finalizer::has(vmi, names::FINALIZER_FOREGROUND_DELETE_VMI) {
            return hold(next);
        }
        plan.extend(launcher::pod(observed).map(|pod| Step::CreatePod(Box::new(pod))));
    }
    let let_go = leaving && status::phase(&next).is_final() && observed.pods.is_empty();
    if let_go {
        drop_finalizers(&mut next, observed.owner_gone);
    }
    if next != *vmi {
        plan.push(Step::Write(Box::new(next)));
    }
    if !leaving {
        plan.extend(pod::current(&observed.pods).and_then(|pod| gate(vmi, pod)));
        plan.extend(pod::current(&observed.pods).and_then(|pod| label(vmi, pod)));
    }
    plan
}

fn needs_pod(observed: &Observed) -> bool {
    let phase = status::phase(&observed.vmi);
    matches!(phase, Phase::Unset | Phase::Pending) && observed.pods.is_empty()
}

/// Admission sets the finalizer. A VMI that came around admission gets it before it gets a pod, so
/// that none can vanish and leave its machine running.
fn hold(mut vmi: VirtualMachineInstance) -> Plan {
    finalizer::add(&mut vmi, names::FINALIZER_FOREGROUND_DELETE_VMI);
    vec![Step::Write(Box::new(vmi))]
}

/// The VM's own finalizer is left to the VM as long as there is one.
fn drop_finalizers(vmi: &mut VirtualMachineInstance, owner_gone: bool) {
    finalizer::remove(vmi, names::FINALIZER_FOREGROUND_DELETE_VMI);
    if owner_gone {
        finalizer::remove(vmi, names::FINALIZER_CONTROLLER);
    }
}

fn delete(pod: &PodFacts) -> Step {
    Step::DeletePod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

/// The gate follows the machine: open unless it is paused.
fn gate(vmi: &VirtualMachineInstance, pod: &PodFacts) -> Option<Step> {
    let paused = status::is_paused(vmi);
    let set = !pod.going_down && pod.unpaused != Some(!paused);
    set.then(|| Step::SetGate {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        paused,
    })
}

fn label(vmi: &VirtualMachineInstance, pod: &PodFacts) -> Option<Step> {
    let node = vmi.labels().get(names::LABEL_NODE_NAME)?;
    let set = !pod.going_down && pod.node_label.as_ref() != Some(node);
    set.then(|| Step::LabelPod {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        node: node.clone(),
    })
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
