//! What `start`, `stop` and `restart` do to a VM in its state. Pure.

mod patch;
mod restart;
mod start;
mod stop;

use kubevirt_api::v1::{
    RestartOptions, StartOptions, StopOptions, VirtualMachine, VirtualMachineInstance,
    VirtualMachineInstancePhase as Phase,
};
use serde_json::Value;

use super::refusal::{Kind, Refusal};

/// A call on a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Run it.
    Start,
    /// End it.
    Stop,
    /// End it and run it anew.
    Restart,
}

impl Verb {
    /// The call with that name in the path.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "start" => Some(Self::Start),
            "stop" => Some(Self::Stop),
            "restart" => Some(Self::Restart),
            _ => None,
        }
    }
}

/// A call with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Run it.
    Start(StartOptions),
    /// End it.
    Stop(StopOptions),
    /// End it and run it anew.
    Restart(RestartOptions),
}

/// What is to be written: JSON patches, each empty when that part stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Seconds that the running machine gets to power off from now on.
    pub grace: Option<i64>,
    /// Changes of the VM's spec.
    pub spec: Vec<Value>,
    /// Changes of the VM's status.
    pub status: Vec<Value>,
}

/// What an order changes about a VM, or why it is refused.
pub fn decide(
    order: &Order,
    vm: &VirtualMachine,
    vmi: Option<&VirtualMachineInstance>,
) -> Result<Plan, Refusal> {
    match order {
        Order::Start(options) => start::decide(options, vm, vmi),
        Order::Stop(options) => stop::decide(options, vm, vmi),
        Order::Restart(options) => restart::decide(options, vm, vmi),
    }
}

/// What is wrong with an order whatever it is about.
pub fn check(order: &Order) -> Result<(), Refusal> {
    match order {
        Order::Restart(options) => restart::check(options),
        Order::Start(_) | Order::Stop(_) => Ok(()),
    }
}

fn phase(vmi: &VirtualMachineInstance) -> Phase {
    vmi.status
        .as_ref()
        .and_then(|status| status.phase)
        .unwrap_or_default()
}

/// The machine, unless it has ended.
fn active(vmi: Option<&VirtualMachineInstance>) -> Option<&VirtualMachineInstance> {
    vmi.filter(|vmi| !phase(vmi).is_final())
}

fn conflict(vm: &VirtualMachine, why: &str) -> Refusal {
    let name = vm.metadata.name.as_deref().unwrap_or_default();
    Refusal::conflict(Kind::Vm, name, why)
}

#[cfg(test)]
#[path = "vm/tests.rs"]
mod tests;
