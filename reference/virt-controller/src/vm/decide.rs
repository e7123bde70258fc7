//! The state machine of a VM as one pure function: what was observed in, what to do out.

use std::time::Duration;

use kube::ResourceExt as _;
use kubevirt_api::{
    names,
    v1::{RunStrategy, VirtualMachine, VirtualMachineInstance, VirtualMachineStatus},
};

use super::{
    backoff, build,
    observe::{Observed, phase},
    requests::Requests,
    status::{self, Story},
    strategy::{self, Intent, Presence, Situation},
};
use crate::finalizer;

/// Finalizer by which the API server says that dependents are to be orphaned.
const FINALIZER_ORPHAN: &str = "orphan";

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Write the VM's metadata and spec.
    WriteVm(Box<VirtualMachine>),
    /// Write the VM's status.
    WriteStatus(Box<VirtualMachineStatus>),
    /// Write the VMI's metadata.
    WriteVmi {
        old: Box<VirtualMachineInstance>,
        new: Box<VirtualMachineInstance>,
    },
    /// Make the VMI.
    CreateVmi(Box<VirtualMachineInstance>),
    /// Delete the VMI of this uid.
    DeleteVmi { uid: String },
}

/// What to do, in order, and when to look again if nothing happens.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) again: Option<Duration>,
}

impl Plan {
    fn add(&mut self, step: Option<Step>) {
        self.steps.extend(step);
    }
}

/// Decides.
pub(super) fn decide(observed: &Observed) -> Plan {
    if observed.vm.metadata.deletion_timestamp.is_some() {
        return take_down(observed);
    }
    if let Some(vm) = introduce(&observed.vm) {
        return first_sight(observed, vm);
    }
    if let Some(orphan) = &observed.orphan {
        return adopt(observed, orphan);
    }
    run(observed)
}

/// The VM with our finalizer and annotations, if they are not there yet.
fn introduce(vm: &VirtualMachine) -> Option<VirtualMachine> {
    let mut new = vm.clone();
    finalizer::add(&mut new, names::FINALIZER_CONTROLLER);
    for (key, value) in build::observed_versions() {
        new.annotations_mut().insert(key, value);
    }
    (new != *vm).then_some(new)
}

/// Nothing is made before the finalizer stands. Every new VM shows the word Stopped first.
fn first_sight(observed: &Observed, vm: VirtualMachine) -> Plan {
    let story = Story {
        start_due: true,
        ..quiet(observed)
    };
    let mut plan = Plan::default();
    plan.add(Some(Step::WriteVm(Box::new(vm))));
    plan.add(Some(Step::WriteStatus(Box::new(status::status(
        observed, story,
    )))));
    plan
}

/// A VMI of our name that belongs to nobody becomes ours; the next pass treats it as such.
fn adopt(observed: &Observed, orphan: &VirtualMachineInstance) -> Plan {
    let mut new = orphan.clone();
    if orphan.metadata.deletion_timestamp.is_none() {
        new.owner_references_mut().push(build::owner(&observed.vm));
    }
    let mut plan = Plan::default();
    plan.add(write_vmi(orphan, new));
    plan.add(Some(Step::WriteStatus(Box::new(status::status(
        observed,
        quiet(observed),
    )))));
    plan
}

/// The VMI goes first, then the VM may go. Orphaned VMIs stay.
fn take_down(observed: &Observed) -> Plan {
    let mut plan = Plan::default();
    let orphaned = finalizer::has(&observed.vm, FINALIZER_ORPHAN);
    match &observed.vmi {
        Some(vmi) if !orphaned => {
            plan.add(release(vmi));
            plan.add(delete(vmi));
            let story = Story {
                deleting: true,
                ..quiet(observed)
            };
            plan.add(Some(Step::WriteStatus(Box::new(status::status(
                observed, story,
            )))));
        }
        _ => {
            let mut vm = observed.vm.clone();
            finalizer::remove(&mut vm, names::FINALIZER_CONTROLLER);
            plan.add((vm != observed.vm).then(|| Step::WriteVm(Box::new(vm))));
        }
    }
    plan
}

/// What the strategy wants, and the status that goes with it.
fn run(observed: &Observed) -> Plan {
    let mut story = quiet(observed);
    let presence = Presence::of(observed.vmi.as_ref());
    let recorded = observed
        .vm
        .status
        .as_ref()
        .and_then(|s| s.run_strategy.as_ref());
    let intent = strategy::intent(
        &story.strategy,
        Situation {
            vmi: presence,
            stop: story.requests.stop(),
            start: story.requests.start(),
            switched: recorded != Some(&story.strategy),
            wait: backoff::wait(story.start_failure.as_ref(), &observed.now),
        },
    );
    let mut plan = Plan::default();
    let mut steps_after_status = Vec::new();
    plan.add(observed.vmi.as_ref().and_then(release));
    match intent {
        Intent::Keep => {}
        Intent::Create { paused } => {
            story.creating = true;
            let vmi = build::vmi(&observed.vm, paused);
            plan.add(Some(Step::CreateVmi(Box::new(vmi))));
        }
        Intent::CreateLater(wait) => {
            story.start_due = true;
            plan.again = Some(wait);
        }
        Intent::Delete => {
            story.deleting = true;
            plan.add(observed.vmi.as_ref().and_then(delete));
        }
        Intent::DeleteThenStart => {
            story.deleting = true;
            story.requests = story.requests.and_start();
            // The order to start is the only trace of the failure once the VMI is gone.
            steps_after_status.extend(observed.vmi.as_ref().and_then(delete));
        }
        Intent::TurnOn => plan.add(Some(Step::WriteVm(Box::new(turned_on(&observed.vm))))),
        Intent::Unsupported => {
            let text = format!("unknown run strategy {}", story.strategy);
            story.failure = Some(("FailedCreate", text));
        }
    }
    plan.add(Some(Step::WriteStatus(Box::new(status::status(
        observed, story,
    )))));
    plan.steps.extend(steps_after_status);
    plan
}

/// The story as long as nothing is done.
fn quiet(observed: &Observed) -> Story {
    let strategy = observed.vm.spec.effective_run_strategy();
    let old = observed.vm.status.as_ref();
    let vmi = observed.vmi.as_ref();
    Story {
        requests: Requests::pending(old.and_then(|s| s.state_change_requests.as_ref()), vmi),
        start_failure: backoff::record(
            old.and_then(|s| s.start_failure.as_ref()),
            &strategy,
            vmi,
            &observed.now,
        ),
        strategy,
        creating: false,
        deleting: false,
        start_due: false,
        failure: None,
    }
}

fn turned_on(vm: &VirtualMachine) -> VirtualMachine {
    let mut new = vm.clone();
    match new.spec.running {
        Some(_) => new.spec.running = Some(true),
        None => new.spec.run_strategy = Some(RunStrategy::Always),
    }
    new
}

/// A VMI whose machine has ended need not wait for us any longer.
fn release(vmi: &VirtualMachineInstance) -> Option<Step> {
    if !phase(vmi).is_final() {
        return None;
    }
    let mut new = vmi.clone();
    finalizer::remove(&mut new, names::FINALIZER_CONTROLLER);
    write_vmi(vmi, new)
}

fn write_vmi(old: &VirtualMachineInstance, new: VirtualMachineInstance) -> Option<Step> {
    (*old != new).then(|| Step::WriteVmi {
        old: Box::new(old.clone()),
        new: Box::new(new),
    })
}

fn delete(vmi: &VirtualMachineInstance) -> Option<Step> {
    if vmi.metadata.deletion_timestamp.is_some() {
        return None;
    }
    vmi.uid().map(|uid| Step::DeleteVmi { uid })
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
