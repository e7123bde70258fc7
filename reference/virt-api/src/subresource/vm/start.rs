//! `start`.

use kubevirt_api::v1::{
    RunStrategy, StartOptions, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstancePhase as Phase,
};

use super::{Plan, Refusal, conflict, patch, phase};

pub(super) fn decide(
    options: &StartOptions,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
) -> Result<Plan, Refusal> {
    let runs = |vmi: &VirtualMachineInstance| {
        !phase(vmi).is_final() && !matches!(phase(vmi), Phase::Unknown | Phase::Unset)
    };
    if vmi.is_some_and(runs) {
        return Err(conflict(vm, "VM is already running"));
    }
    let paused = options.paused == Some(true);
    let strategy = vm.spec.effective_run_strategy();
    match strategy {
        RunStrategy::Halted if !paused => Ok(Plan {
            spec: patch::run(vm, true),
            status: patch::forgive(vm).into_iter().collect(),
            ..Plan::default()
        }),
        // Only virt-controller can both start the machine paused and change the strategy.
        RunStrategy::Halted => by_order(vm, None, paused),
        RunStrategy::RerunOnFailure if vmi.is_some_and(|vmi| phase(vmi) == Phase::Failed) => {
            Err(conflict(
                vm,
                "RerunOnFailure does not support starting VM from failed state",
            ))
        }
        RunStrategy::RerunOnFailure | RunStrategy::Manual => {
            by_order(vm, vmi.filter(|vmi| phase(vmi).is_final()), paused)
        }
        RunStrategy::Always | RunStrategy::Once | RunStrategy::Other(_) => Err(conflict(
            vm,
            &format!("{strategy} does not support manual start requests"),
        )),
        RunStrategy::WaitAsReceiver => Ok(Plan::default()),
    }
}

/// A machine that has ended is cleared away first.
fn by_order(
    vm: &VirtualMachine,
    ended: Option<&VirtualMachineInstance>,
    paused: bool,
) -> Result<Plan, Refusal> {
    let orders: Vec<_> = ended
        .map(patch::stop)
        .into_iter()
        .chain([patch::start(paused)])
        .collect();
    Ok(Plan {
        status: patch::orders(vm, &orders)?,
        ..Plan::default()
    })
}
