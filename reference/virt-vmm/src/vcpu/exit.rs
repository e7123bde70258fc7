//! Entering the guest, and what its coming back means.

use kvm_bindings::KVM_MP_STATE_HALTED;
use kvm_ioctls::{VcpuExit, VcpuFd};

use crate::devices::{Effect, Ports};
use crate::event::{EngineFault, ResetCause};
use crate::vcpu::kick::kick_self;

/// Why the guest came back.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// A device was accessed.
    Access(Effect),
    /// Somebody kicked, or a signal came: look for requests.
    Interrupted,
    /// The engine cannot go on.
    Fault(EngineFault),
}

/// Interrupt flag of RFLAGS.
const INTERRUPTS_ON: u64 = 1 << 9;

/// Runs the guest until something has to be done outside of it.
pub(crate) fn enter(vcpu: &mut VcpuFd, ports: &mut Ports) -> Exit {
    match vcpu.run() {
        Ok(VcpuExit::IoOut(port, data)) => Exit::Access(ports.write(port, data)),
        Ok(VcpuExit::IoIn(port, data)) => {
            ports.read(port, data);
            Exit::Access(Effect::Nothing)
        }
        // No device lives in memory; an empty bus reads as all ones.
        Ok(VcpuExit::MmioRead(_, data)) => {
            data.fill(0xff);
            Exit::Access(Effect::Nothing)
        }
        Ok(VcpuExit::MmioWrite(..) | VcpuExit::IoapicEoi(_)) => Exit::Access(Effect::Nothing),
        Ok(VcpuExit::Shutdown) => Exit::Access(Effect::Reset(ResetCause::TripleFault)),
        Ok(VcpuExit::Intr) => Exit::Interrupted,
        Ok(VcpuExit::FailEntry(reason, _cpu)) => Exit::Fault(EngineFault::EntryRefused { reason }),
        Ok(VcpuExit::InternalError) => Exit::Fault(internal_error(vcpu)),
        Ok(other) => Exit::Fault(EngineFault::UnexpectedExit {
            exit: format!("{other:?}"),
        }),
        Err(error) if matches!(error.errno(), libc::EINTR | libc::EAGAIN) => Exit::Interrupted,
        Err(error) => Exit::Fault(EngineFault::Request {
            request: "KVM_RUN".to_owned(),
            errno: error.errno(),
        }),
    }
}

/// Completes a device access that has come out but whose instruction KVM has not finished; without this the leftover
/// would be carried out on top of a state that is set from outside.
///
/// Leaves the vCPU kicked: clearing that here could swallow somebody else's kick, so the caller has to look for requests.
pub(crate) fn finish_access(vcpu: &mut VcpuFd) {
    kick_self(vcpu);
    // Returns EINTR after the completion; anything else belongs to the state that is about to be thrown away.
    let _discarded = vcpu.run().map(drop);
}

/// Whether the vCPU is halted with interrupts off and nothing pending that could wake it.
pub(crate) fn dead_halt(vcpu: &VcpuFd) -> bool {
    let halted = vcpu
        .get_mp_state()
        .is_ok_and(|state| state.mp_state == KVM_MP_STATE_HALTED);
    let deaf = || {
        vcpu.get_regs()
            .is_ok_and(|regs| regs.rflags & INTERRUPTS_ON == 0)
    };
    let nothing_pending = || {
        vcpu.get_vcpu_events()
            .is_ok_and(|events| events.nmi.pending == 0 && events.smi.pending == 0)
    };
    halted && deaf() && nothing_pending()
}

/// Reads KVM's account of an internal error out of the run block.
#[expect(unsafe_code, reason = "the run block is a union")]
fn internal_error(vcpu: &mut VcpuFd) -> EngineFault {
    let rip = vcpu.get_regs().map(|regs| regs.rip).unwrap_or_default();
    let run = vcpu.get_kvm_run();
    // SAFETY: the caller has just seen exit reason KVM_EXIT_INTERNAL_ERROR, for which KVM fills this member.
    let internal = unsafe { run.__bindgen_anon_1.internal };
    let count = usize::try_from(internal.ndata)
        .unwrap_or_default()
        .min(internal.data.len());
    EngineFault::Internal {
        suberror: internal.suberror,
        rip,
        instruction: instruction(&internal.data[..count]),
    }
}

/// The instruction bytes of an emulation failure: a flag word, then one byte of length and up to 15 bytes.
fn instruction(data: &[u64]) -> Vec<u8> {
    const HAS_INSTRUCTION: u64 = 1;
    const LONGEST: usize = 15;
    match data {
        [flags, rest @ ..] if flags & HAS_INSTRUCTION != 0 => {
            let bytes: Vec<u8> = rest.iter().flat_map(|word| word.to_le_bytes()).collect();
            let length = bytes
                .first()
                .map_or(0, |length| usize::from(*length).min(LONGEST));
            bytes.into_iter().skip(1).take(length).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::nothing(&[], &[])]
    #[case::fetch_failed(&[0, 0x0aff], &[])]
    #[case::two_bytes(&[1, u64::from_le_bytes([2, 0xf0, 0x48, 9, 9, 9, 9, 9]), 0], &[0xf0, 0x48])]
    #[case::lying_length(&[1, 0xff], &[0; 7])]
    fn instruction_bytes(#[case] data: &[u64], #[case] expected: &[u8]) {
        assert_eq!(instruction(data), expected);
    }
}
