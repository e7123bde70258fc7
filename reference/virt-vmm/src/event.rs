//! What happens to a machine, as values: every state change is an event with a stamp, every end has its own name.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A state change of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The KVM machine exists.
    Created,
    /// Guest memory is mapped and known to KVM.
    MemoryReady,
    /// The kernel, its tables and the vCPU's first state are in place (again after each reset).
    KernelLoaded,
    /// The guest's first instruction is about to run (once per boot).
    Entered,
    /// The guest wrote its first serial byte (once per boot).
    FirstByte,
    /// The machine runs for the first time.
    Running,
    /// The guest stands still on request.
    Paused,
    /// The guest goes on after a pause.
    Resumed,
    /// Every vCPU is halted with interrupts off, so nothing but a reset wakes it. The machine still counts as running.
    Stuck,
    /// The guest was reset and boots again in this same machine.
    Rebooted {
        /// Who asked for it.
        cause: ResetCause,
    },
    /// The machine is gone. The last event.
    Ended {
        /// How it ended.
        cause: Ending,
    },
}

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub monotonic_ns: u64,
}

/// Who reset the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResetCause {
    /// The guest wrote 0xFE to port 0x64.
    Keyboard,
    /// The guest set the reset bit of port 0xCF9 (also the ACPI reset register).
    Cf9,
    /// The guest faulted three times in a row.
    TripleFault,
    /// [`crate::Machine::reset`] was called.
    Requested,
}

/// How a machine ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ending", rename_all = "kebab-case")]
pub enum Ending {
    /// The guest switched itself off through ACPI S5.
    PoweredOff,
    /// The guest reported a panic through its panic device.
    Panicked,
    /// [`crate::Machine::kill`] was called, or the last handle was dropped.
    Killed,
    /// KVM or this machine could not go on; the guest is not to blame.
    EngineError {
        /// What went wrong.
        fault: EngineFault,
    },
    /// The guest left through the debug-exit port (only when the configuration has it).
    DebugExit {
        /// The byte that the guest wrote.
        code: u8,
    },
}

/// Why the engine gave up.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "kebab-case")]
pub enum EngineFault {
    /// KVM could not execute a guest instruction.
    #[error("kvm internal error {suberror} at rip {rip:#x}, instruction bytes [{}]", hex(.instruction))]
    Internal {
        /// KVM's suberror number (1 is emulation failure).
        suberror: u32,
        /// Where the guest was.
        rip: u64,
        /// The bytes that KVM could not execute; empty when it could not even fetch them.
        instruction: Vec<u8>,
    },
    /// The processor refused the guest state.
    #[error("the processor refused to enter the guest, reason {reason:#x}")]
    EntryRefused {
        /// The hardware's reason.
        reason: u64,
    },
    /// A KVM request failed.
    #[error("kvm request {request} failed with errno {errno}")]
    Request {
        /// Name of the request.
        request: String,
        /// Its error number.
        errno: i32,
    },
    /// KVM returned from the guest for a reason that this machine never asks for.
    #[error("unexpected exit from the guest: {exit}")]
    UnexpectedExit {
        /// Name of the exit.
        exit: String,
    },
    /// The guest could not be loaded again after a reset.
    #[error("reboot in place failed: {reason}")]
    Reload {
        /// What failed.
        reason: String,
    },
}

fn hex(bytes: &[u8]) -> String {
    let shown: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    shown.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engine_fault_names_the_instruction() {
        let fault = EngineFault::Internal {
            suberror: 1,
            rip: 0x10_0040,
            instruction: vec![0xf0, 0x48],
        };
        assert_eq!(
            fault.to_string(),
            "kvm internal error 1 at rip 0x100040, instruction bytes [f0 48]"
        );
    }

    #[test]
    fn events_read_flat_in_json() {
        let stamped = Stamped {
            event: Event::Rebooted {
                cause: ResetCause::TripleFault,
            },
            monotonic_ns: 7,
        };
        let json = serde_json::to_string(&stamped).expect("plain data");
        assert_eq!(
            json,
            r#"{"event":"rebooted","cause":"triple-fault","monotonic_ns":7}"#
        );
    }
}
