//! The host's KVM: is it usable, and which CPU does it offer.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use kvm_bindings::{CpuId, KVM_API_VERSION, KVM_MAX_CPUID_ENTRIES, kvm_enable_cap};
use kvm_ioctls::{Cap, Kvm, VmFd};
use thiserror::Error;

/// Where KVM lives.
pub(crate) const DEVICE: &str = "/dev/kvm";

/// Interrupt pins of the split irqchip's I/O APIC.
const IOAPIC_PINS: u64 = 24;

/// What a usable KVM offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvmFacts {
    /// Its API version.
    pub api_version: i32,
    /// Most vCPUs of one machine.
    pub max_vcpus: usize,
    /// Most memory slots of one machine.
    pub memory_slots: usize,
}

/// KVM cannot be used, or refused something.
#[derive(Debug, Error)]
pub enum KvmError {
    /// The device cannot be opened.
    #[error("failed to open {}", path.display())]
    Open {
        /// The device.
        path: PathBuf,
        /// Why.
        source: kvm_ioctls::Error,
    },
    /// The device answers with another protocol.
    #[error("{} speaks kvm api version {found}, {KVM_API_VERSION} is needed", path.display())]
    ApiVersion {
        /// The device.
        path: PathBuf,
        /// Its version.
        found: i32,
    },
    /// The device lacks something that a machine needs.
    #[error("{} lacks the capability {capability}", path.display())]
    Capability {
        /// The device.
        path: PathBuf,
        /// The missing one.
        capability: &'static str,
    },
    /// A request failed.
    #[error("kvm request {request} failed")]
    Request {
        /// Its name.
        request: &'static str,
        /// Why.
        source: kvm_ioctls::Error,
    },
}

/// Opens the device and checks the API version and every capability that a machine uses.
///
/// # Errors
/// The first thing that is missing.
pub fn kvm_usable(path: &Path) -> Result<KvmFacts, KvmError> {
    let kvm = open(path)?;
    let found = kvm.get_api_version();
    if u32::try_from(found) != Ok(KVM_API_VERSION) {
        return Err(KvmError::ApiVersion {
            path: path.to_owned(),
            found,
        });
    }
    let needed = [
        (Cap::UserMemory, "user memory"),
        (Cap::SplitIrqchip, "split irqchip"),
        (Cap::ImmediateExit, "immediate exit"),
        (Cap::ExtCpuid, "extended cpuid"),
        (Cap::MpState, "mp state"),
        (Cap::VcpuEvents, "vcpu events"),
    ];
    for (cap, capability) in needed {
        if !kvm.check_extension(cap) {
            return Err(KvmError::Capability {
                path: path.to_owned(),
                capability,
            });
        }
    }
    Ok(KvmFacts {
        api_version: found,
        max_vcpus: kvm.get_max_vcpus(),
        memory_slots: kvm.get_nr_memslots(),
    })
}

/// Opens the device for this process alone (close on exec).
pub(crate) fn open(path: &Path) -> Result<Kvm, KvmError> {
    let failed = |source| KvmError::Open {
        path: path.to_owned(),
        source,
    };
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| failed(kvm_ioctls::Error::new(libc::EINVAL)))?;
    Kvm::new_with_path(name).map_err(failed)
}

/// Makes the in-kernel local APICs; the I/O APIC stays out of the kernel, which makes machines quick to end.
pub(crate) fn split_irqchip(vm: &VmFd) -> Result<(), KvmError> {
    let mut cap = kvm_enable_cap {
        cap: Cap::SplitIrqchip as u32,
        ..Default::default()
    };
    cap.args[0] = IOAPIC_PINS;
    vm.enable_cap(&cap).map_err(|source| KvmError::Request {
        request: "KVM_CAP_SPLIT_IRQCHIP",
        source,
    })
}

/// The CPU that KVM offers, asked once per process: the question costs more than the answer's use.
pub(crate) fn cpuid(kvm: &Kvm) -> Result<&'static CpuId, KvmError> {
    static OFFERED: OnceLock<CpuId> = OnceLock::new();
    if let Some(known) = OFFERED.get() {
        return Ok(known);
    }
    let offered = kvm
        .get_supported_cpuid(KVM_MAX_CPUID_ENTRIES)
        .map_err(|source| KvmError::Request {
            request: "KVM_GET_SUPPORTED_CPUID",
            source,
        })?;
    Ok(OFFERED.get_or_init(|| offered))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_device_is_named() {
        let error = kvm_usable(Path::new("/nonexistent/kvm")).expect_err("no such device");
        assert_eq!(error.to_string(), "failed to open /nonexistent/kvm");
    }

    #[test]
    fn another_device_is_no_kvm() {
        assert!(matches!(
            kvm_usable(Path::new("/dev/null")),
            Err(KvmError::ApiVersion { .. })
        ));
    }
}
