//! Which back end runs a domain: one function from the domain and the host.

use thiserror::Error;
use virt_cmd::Domain;

use crate::files::KernelKind;

/// What the launcher found on its host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostFacts {
    /// `/dev/kvm` can be opened for reading and writing.
    pub(crate) kvm: bool,
    /// The cluster allows software emulation.
    pub(crate) allow_emulation: bool,
    /// The QEMU program exists.
    pub(crate) qemu: bool,
}

/// The back ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    /// Our own machine on KVM.
    Vmm,
    /// QEMU on KVM.
    QemuKvm,
    /// QEMU that emulates the processor.
    QemuTcg,
}

impl Backend {
    /// The word for the state: `vmm` or `qemu`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Vmm => "vmm",
            Self::QemuKvm | Self::QemuTcg => "qemu",
        }
    }

    /// The word for the state: `kvm` or `tcg`.
    pub(crate) fn accelerator(self) -> &'static str {
        match self {
            Self::Vmm | Self::QemuKvm => "kvm",
            Self::QemuTcg => "tcg",
        }
    }
}

/// Why nothing here can run the domain.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum NoBackend {
    /// No hardware help, and emulation was not asked for.
    #[error(
        "/dev/kvm cannot be used and emulation is not allowed (developerConfiguration.useEmulation)"
    )]
    NoAccelerator,
    /// QEMU is needed and its program is missing.
    #[error("this machine needs QEMU, and the launcher's image has none")]
    NoQemu,
}

/// Our own machine when it has everything that is asked for, QEMU otherwise, emulation as a last resort.
pub(crate) fn choose(
    domain: &Domain,
    kernel: Option<KernelKind>,
    host: HostFacts,
) -> Result<Backend, NoBackend> {
    if host.kvm && fits_vmm(domain, kernel) {
        return Ok(Backend::Vmm);
    }
    let accelerated = match (host.kvm, host.allow_emulation) {
        (true, _) => Backend::QemuKvm,
        (false, true) => Backend::QemuTcg,
        (false, false) => return Err(NoBackend::NoAccelerator),
    };
    if host.qemu {
        Ok(accelerated)
    } else {
        Err(NoBackend::NoQemu)
    }
}

/// Our own machine boots ELF kernels on one processor and has no disks.
fn fits_vmm(domain: &Domain, kernel: Option<KernelKind>) -> bool {
    kernel == Some(KernelKind::Elf) && domain.disks.is_empty() && domain.vcpus == 1
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::fixture;

    const KVM: HostFacts = HostFacts {
        kvm: true,
        allow_emulation: false,
        qemu: true,
    };
    const BOTH: HostFacts = HostFacts {
        kvm: true,
        allow_emulation: true,
        qemu: true,
    };
    const EMULATION: HostFacts = HostFacts {
        kvm: false,
        allow_emulation: true,
        qemu: true,
    };
    const NOTHING: HostFacts = HostFacts {
        kvm: false,
        allow_emulation: false,
        qemu: true,
    };

    fn without_qemu(host: HostFacts) -> HostFacts {
        HostFacts {
            qemu: false,
            ..host
        }
    }

    #[rstest]
    #[case::kernel_alone(fixture::kernel(), KVM, Ok(Backend::Vmm))]
    #[case::kernel_alone_needs_no_qemu(fixture::kernel(), without_qemu(KVM), Ok(Backend::Vmm))]
    #[case::emulation_allowed_but_not_needed(fixture::kernel(), BOTH, Ok(Backend::Vmm))]
    #[case::two_processors(Domain { vcpus: 2, ..fixture::kernel() }, KVM, Ok(Backend::QemuKvm))]
    #[case::kernel_and_disk(fixture::kernel_and_disk(), KVM, Ok(Backend::QemuKvm))]
    #[case::disk(fixture::disk(), KVM, Ok(Backend::QemuKvm))]
    #[case::disk_prefers_kvm(fixture::disk(), BOTH, Ok(Backend::QemuKvm))]
    #[case::disk_emulated(fixture::disk(), EMULATION, Ok(Backend::QemuTcg))]
    #[case::kernel_emulated(fixture::kernel(), EMULATION, Ok(Backend::QemuTcg))]
    #[case::nothing_for_a_kernel(fixture::kernel(), NOTHING, Err(NoBackend::NoAccelerator))]
    #[case::nothing_for_a_disk(fixture::disk(), NOTHING, Err(NoBackend::NoAccelerator))]
    #[case::no_qemu_for_a_disk(fixture::disk(), without_qemu(KVM), Err(NoBackend::NoQemu))]
    #[case::no_qemu_to_emulate(fixture::kernel(), without_qemu(EMULATION), Err(NoBackend::NoQemu))]
    fn the_choice(
        #[case] domain: Domain,
        #[case] host: HostFacts,
        #[case] expected: Result<Backend, NoBackend>,
    ) {
        let kernel = domain.kernel.as_ref().map(|_| KernelKind::Elf);
        assert_eq!(choose(&domain, kernel, host), expected);
    }

    #[test]
    fn a_kernel_that_is_no_elf_file_needs_qemu() {
        assert_eq!(
            choose(&fixture::kernel(), Some(KernelKind::Other), KVM),
            Ok(Backend::QemuKvm)
        );
    }
}
