//! `restart`.

use kubevirt_api::v1::{RestartOptions, RunStrategy, VirtualMachine, VirtualMachineInstance};

use super::{Plan, Refusal, conflict, patch};

/// Seconds that a machine gets in a forced restart; with none the kubelet might not even ask.
const FORCED_GRACE: i64 = 1;

pub(super) fn check(options: &RestartOptions) -> Result<(), Refusal> {
    match options.grace_period_seconds {
        Some(..0) => Err(Refusal::bad_request(
            "gracePeriod has to be greater or equal to 0",
        )),
        Some(1..) => Err(Refusal::bad_request(
            "For force restart, only gracePeriod=0 is supported for now",
        )),
        Some(0) | None => Ok(()),
    }
}

pub(super) fn decide(
    options: &RestartOptions,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
) -> Result<Plan, Refusal> {
    check(options)?;
    let strategy = vm.spec.effective_run_strategy();
    if matches!(strategy, RunStrategy::Halted | RunStrategy::Once) {
        // The spelling is the original's.
        let why = format!("RunStategy {strategy} does not support manual restart requests");
        return Err(conflict(vm, &why));
    }
    let vmi = vmi.ok_or_else(|| conflict(vm, "VM is not running: Halted"))?;
    Ok(Plan {
        grace: options.grace_period_seconds.map(|_| FORCED_GRACE),
        spec: Vec::new(),
        status: patch::orders(vm, &[patch::stop(vmi), patch::start(false)])?,
    })
}
