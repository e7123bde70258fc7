//! `stop`.

use kubevirt_api::v1::{RunStrategy, StopOptions, VirtualMachine, VirtualMachineInstance};

use super::{Plan, Refusal, active, conflict, patch};

/// What a machine that says nothing about it gets.
const DEFAULT_GRACE: i64 = 30;

pub(super) fn decide(
    options: &StopOptions,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
) -> Result<Plan, Refusal> {
    let running = active(vmi);
    let strategy = vm.spec.effective_run_strategy();
    let plan = match (&strategy, running) {
        (RunStrategy::Always | RunStrategy::Once, _) => Plan {
            spec: patch::run(vm, false),
            status: patch::forgive(vm).into_iter().collect(),
            ..Plan::default()
        },
        (RunStrategy::WaitAsReceiver, _) => Plan::default(),
        (_, None) => return Err(conflict(vm, "VM is not running")),
        (RunStrategy::Halted, Some(vmi)) if !is_shorter(options, vmi) => {
            return Err(conflict(
                vm,
                "Halted only supports manual stop requests with a shorter graceperiod",
            ));
        }
        (_, Some(vmi)) => Plan {
            status: patch::orders(vm, &[patch::stop(vmi)])?,
            ..Plan::default()
        },
    };
    if options.grace_period.is_some_and(|seconds| seconds < 0) {
        return Err(Refusal::bad_request(
            "gracePeriod has to be greater or equal to 0",
        ));
    }
    Ok(Plan {
        grace: running.and(options.grace_period),
        ..plan
    })
}

fn is_shorter(options: &StopOptions, vmi: &VirtualMachineInstance) -> bool {
    let now = vmi
        .spec
        .termination_grace_period_seconds
        .unwrap_or(DEFAULT_GRACE);
    options.grace_period.is_some_and(|wanted| wanted < now)
}
