//! The vCPU's state at the start of a boot: as after power-on, but at the kernel's PVH entry point in flat 32-bit
//! protected mode. Setting it again is what makes a reset in place.

use kvm_bindings::{
    KVM_MP_STATE_RUNNABLE, Msrs, kvm_debugregs, kvm_fpu, kvm_lapic_state, kvm_mp_state,
    kvm_msr_entry, kvm_regs, kvm_segment, kvm_sregs, kvm_vcpu_events, kvm_xcr, kvm_xcrs,
};
use kvm_ioctls::VcpuFd;

use crate::kvm::KvmError;
use crate::memory::layout::START_INFO;

/// What cannot be written down as constants: taken from the fresh vCPU.
#[derive(Debug)]
pub(crate) struct PowerOnState {
    sregs: kvm_sregs,
    lapic: kvm_lapic_state,
}

impl PowerOnState {
    /// Reads it from a vCPU that has never run.
    pub(crate) fn of(vcpu: &VcpuFd) -> Result<Self, KvmError> {
        Ok(Self {
            sregs: vcpu.get_sregs().map_err(failed("KVM_GET_SREGS"))?,
            lapic: vcpu.get_lapic().map_err(failed("KVM_GET_LAPIC"))?,
        })
    }

    /// Points a vCPU that has never run at the kernel.
    pub(crate) fn enter_at(&self, vcpu: &VcpuFd, entry: u64) -> Result<(), KvmError> {
        vcpu.set_sregs(&flat_protected_mode(self.sregs))
            .map_err(failed("KVM_SET_SREGS"))?;
        vcpu.set_regs(&entry_registers(entry))
            .map_err(failed("KVM_SET_REGS"))
    }

    /// Takes a vCPU that has run back to power-on, then points it at the kernel.
    pub(crate) fn reset(&self, vcpu: &VcpuFd, entry: u64) -> Result<(), KvmError> {
        let runnable = kvm_mp_state {
            mp_state: KVM_MP_STATE_RUNNABLE,
        };
        vcpu.set_vcpu_events(&kvm_vcpu_events::default())
            .map_err(failed("KVM_SET_VCPU_EVENTS"))?;
        vcpu.set_mp_state(runnable)
            .map_err(failed("KVM_SET_MP_STATE"))?;
        self.enter_at(vcpu, entry)?;
        vcpu.set_fpu(&kvm_fpu {
            fcw: 0x37f,
            mxcsr: 0x1f80,
            ..Default::default()
        })
        .map_err(failed("KVM_SET_FPU"))?;
        vcpu.set_xcrs(&reset_xcrs())
            .map_err(failed("KVM_SET_XCRS"))?;
        let debug = kvm_debugregs {
            dr6: 0xffff_0ff0,
            dr7: 0x400,
            ..Default::default()
        };
        vcpu.set_debug_regs(&debug)
            .map_err(failed("KVM_SET_DEBUGREGS"))?;
        vcpu.set_lapic(&self.lapic)
            .map_err(failed("KVM_SET_LAPIC"))?;
        reset_msrs(vcpu)
    }
}

fn failed(request: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> KvmError {
    move |source| KvmError::Request { request, source }
}

fn entry_registers(entry: u64) -> kvm_regs {
    kvm_regs {
        rip: entry,
        rbx: START_INFO,
        rflags: 2,
        ..Default::default()
    }
}

/// Flat segments, protection on, paging off: what PVH promises a kernel.
fn flat_protected_mode(power_on: kvm_sregs) -> kvm_sregs {
    const CODE: u8 = 0xb;
    const DATA: u8 = 0x3;
    const TASK: u8 = 0xb;
    const PROTECTION_AND_FPU: u64 = 0x11;

    let flat = |selector, type_| kvm_segment {
        base: 0,
        limit: u32::MAX,
        selector,
        type_,
        present: 1,
        db: 1,
        s: 1,
        g: 1,
        ..Default::default()
    };
    let data = flat(0x18, DATA);
    kvm_sregs {
        cs: flat(0x10, CODE),
        ds: data,
        es: data,
        fs: data,
        gs: data,
        ss: data,
        tr: kvm_segment {
            limit: 0x67,
            type_: TASK,
            present: 1,
            ..Default::default()
        },
        cr0: PROTECTION_AND_FPU,
        ..power_on
    }
}

fn reset_xcrs() -> kvm_xcrs {
    let mut xcrs = kvm_xcrs {
        nr_xcrs: 1,
        ..Default::default()
    };
    xcrs.xcrs[0] = kvm_xcr {
        xcr: 0,
        value: 1,
        ..Default::default()
    };
    xcrs
}

/// What a guest may have programmed, with the value after power-on. The paravirtual ones come first: they make KVM
/// write into guest memory, which is about to be given to the next boot.
const MSRS: &[(u32, u64)] = &[
    (0x4b56_4d02, 0), // asynchronous page faults
    (0x4b56_4d03, 0), // stolen time
    (0x4b56_4d04, 0), // paravirtual end of interrupt
    (0x4b56_4d01, 0), // paravirtual clock
    (0x4b56_4d00, 0), // wall clock
    (0x6e0, 0),       // TSC deadline
    (0x174, 0),       // SYSENTER CS
    (0x175, 0),       // SYSENTER ESP
    (0x176, 0),       // SYSENTER EIP
    (0xc000_0081, 0), // STAR
    (0xc000_0082, 0), // LSTAR
    (0xc000_0083, 0), // CSTAR
    (0xc000_0084, 0), // SYSCALL mask
    (0xc000_0102, 0), // kernel GS base
    (0x277, 0x0007_0406_0007_0406),
];

/// One by one: a register that this CPU does not have is refused, and then no guest can have programmed it either.
fn reset_msrs(vcpu: &VcpuFd) -> Result<(), KvmError> {
    for (index, data) in MSRS {
        let entry = kvm_msr_entry {
            index: *index,
            data: *data,
            ..Default::default()
        };
        let one = Msrs::from_entries(&[entry]).map_err(|_| KvmError::Request {
            request: "KVM_SET_MSRS",
            source: kvm_ioctls::Error::new(libc::E2BIG),
        })?;
        let _refused = vcpu.set_msrs(&one);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_starts_in_flat_protected_mode_without_paging() {
        let sregs = flat_protected_mode(kvm_sregs {
            apic_base: 0xfee0_0900,
            efer: 0,
            ..Default::default()
        });
        assert_eq!(
            (sregs.cr0 & (1 << 31), sregs.cr0 & 1, sregs.efer),
            (0, 1, 0)
        );
        assert_eq!(
            (sregs.cs.limit, sregs.cs.db, sregs.ds.base),
            (u32::MAX, 1, 0)
        );
        assert_eq!(sregs.apic_base, 0xfee0_0900);
        let regs = entry_registers(0x10_0010);
        assert_eq!(
            (regs.rip, regs.rbx, regs.rflags),
            (0x10_0010, START_INFO, 2)
        );
    }
}
