//! Guest memory: where it lies is arithmetic (`layout`), mapping it is one call.

pub(crate) mod layout;

use kvm_bindings::kvm_userspace_memory_region;
use kvm_ioctls::VmFd;
use thiserror::Error;
use vm_memory::{GuestAddress, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion};

use crate::memory::layout::Span;

/// Guest memory could not be made.
#[derive(Debug, Error)]
pub enum MemoryError {
    /// The size does not fit the guest's or the host's addresses.
    #[error("memory of {bytes} bytes does not fit the address space")]
    TooLarge {
        /// The size asked for.
        bytes: u64,
    },
    /// The host refused the mapping.
    #[error("failed to map {bytes} bytes of guest memory")]
    Map {
        /// The size asked for.
        bytes: u64,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// KVM refused a memory slot.
    #[error("failed to give kvm the guest memory at {start:#x}")]
    Slot {
        /// Guest address of the slot.
        start: u64,
        /// Why.
        source: kvm_ioctls::Error,
    },
}

/// Maps anonymous memory for the spans; pages exist once the guest touches them.
pub(crate) fn map(spans: &[Span], bytes: u64) -> Result<GuestMemoryMmap, MemoryError> {
    let ranges = spans
        .iter()
        .map(|span| usize::try_from(span.size).map(|size| (GuestAddress(span.start), size)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|_| MemoryError::TooLarge { bytes })?;
    GuestMemoryMmap::from_ranges(&ranges).map_err(|source| MemoryError::Map {
        bytes,
        source: Box::new(source),
    })
}

/// Tells KVM about the memory. Call it before the irqchip is made: afterwards each call waits milliseconds.
#[expect(
    unsafe_code,
    reason = "a memory slot hands raw addresses to the kernel"
)]
pub(crate) fn register(vm: &VmFd, memory: &GuestMemoryMmap) -> Result<(), MemoryError> {
    for (slot, region) in memory.iter().enumerate() {
        let kvm_region = kvm_userspace_memory_region {
            slot: u32::try_from(slot).unwrap_or(u32::MAX),
            flags: 0,
            guest_phys_addr: region.start_addr().0,
            memory_size: region.len(),
            userspace_addr: region.as_ptr().addr() as u64,
        };
        // SAFETY: the region is a live mapping of exactly `memory_size` bytes, spans never overlap (`layout`), and the
        // machine keeps `memory` alive until after the VM descriptor is closed.
        unsafe { vm.set_user_memory_region(kvm_region) }.map_err(|source| MemoryError::Slot {
            start: kvm_region.guest_phys_addr,
            source,
        })?;
    }
    Ok(())
}

/// Gives all pages back, so that the next boot finds zeroes as after power-on.
#[expect(
    unsafe_code,
    reason = "discarding pages changes memory behind references"
)]
pub(crate) fn discard(memory: &GuestMemoryMmap) -> Result<(), std::io::Error> {
    for region in memory.iter() {
        let length = usize::try_from(region.len()).unwrap_or(usize::MAX);
        // SAFETY: the range is exactly one private anonymous mapping that we own; guest memory is only accessed through
        // volatile reads and writes, never through references, and no vCPU runs while it is discarded.
        let result = unsafe { libc::madvise(region.as_ptr().cast(), length, libc::MADV_DONTNEED) };
        if result != 0 {
            return Err(std::io::Error::last_os_error());
        }
    }
    Ok(())
}
