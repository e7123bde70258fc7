//! What the decision about a VM rests on.

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::ResourceExt as _;
use kubevirt_api::v1::{VirtualMachine, VirtualMachineInstance, VirtualMachineInstancePhase};

use crate::context::Context;

/// What the decision about a VM rests on.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    pub(super) vm: VirtualMachine,
    /// The VMI of the VM's name, when it belongs to this VM.
    pub(super) vmi: Option<VirtualMachineInstance>,
    /// The VMI of the VM's name, when it belongs to nobody: the VM may take it.
    pub(super) orphan: Option<VirtualMachineInstance>,
    pub(super) now: Time,
}

/// Gathers from the stores.
pub(super) fn observe(context: &Context, vm: VirtualMachine) -> Observed {
    let named = context.vmi(&vm.namespace().unwrap_or_default(), &vm.name_any());
    sort(vm, named, Time(Timestamp::now()))
}

/// Tells whose the VMI of the VM's name is. One of another owner counts as absent.
pub(super) fn sort(
    vm: VirtualMachine,
    named: Option<VirtualMachineInstance>,
    now: Time,
) -> Observed {
    let owner = named.as_ref().and_then(controller_uid);
    let mine = owner.is_some() && owner == vm.uid();
    let (vmi, orphan) = match named {
        Some(vmi) if mine => (Some(vmi), None),
        Some(vmi) if owner.is_none() => (None, Some(vmi)),
        _ => (None, None),
    };
    Observed {
        vm,
        vmi,
        orphan,
        now,
    }
}

fn controller_uid(vmi: &VirtualMachineInstance) -> Option<String> {
    let owner = vmi
        .owner_references()
        .iter()
        .find(|owner| owner.controller == Some(true))?;
    Some(owner.uid.clone())
}

/// Where the VMI is in its life.
pub(super) fn phase(vmi: &VirtualMachineInstance) -> VirtualMachineInstancePhase {
    vmi.status
        .as_ref()
        .and_then(|status| status.phase)
        .unwrap_or_default()
}

/// Whether the machine ran at some time.
pub(super) fn has_run(vmi: &VirtualMachineInstance) -> bool {
    vmi.status
        .iter()
        .flat_map(|status| status.phase_transition_timestamps.iter().flatten())
        .any(|entry| entry.phase == VirtualMachineInstancePhase::Running)
}
