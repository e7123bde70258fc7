//! Defaults of guest memory.

use crate::{
    config::ClusterConfig,
    quantity::Quantity,
    v1::{Memory, VirtualMachineInstanceSpec},
};

/// Memory can be plugged into guests of this size and above, in blocks of the second.
const HOTPLUG_MINIMUM: i128 = 1 << 30;
const HOTPLUG_BLOCK: i128 = 2 << 20;

/// D8: the guest sees what is requested, else the limit, else one huge page.
pub(super) fn guest(spec: &mut VirtualMachineInstanceSpec) {
    let domain = &mut spec.domain;
    if domain.memory.as_ref().is_some_and(|m| m.guest.is_some()) {
        return;
    }
    let page = domain
        .memory
        .as_ref()
        .and_then(|m| m.hugepages.as_ref())
        .and_then(|h| h.page_size.as_deref());
    let positive = |quantity: &Quantity| !quantity.is_zero();
    let read = |wire| Quantity::try_from(wire).ok().filter(positive);
    let resources = &domain.resources;
    let size = resources
        .request("memory")
        .and_then(read)
        .or_else(|| resources.limit("memory").and_then(read))
        .or_else(|| Quantity::parse(page?).ok().filter(positive));
    if let Some(size) = size {
        domain.memory.get_or_insert_default().guest = Some(size.to_wire());
    }
}

/// D26: room for memory that is plugged in later, for guests that can take it.
pub(super) fn max_guest(spec: &mut VirtualMachineInstanceSpec, config: &ClusterConfig) {
    let pluggable = spec.architecture.as_deref() == Some("amd64");
    let Some(memory) = &mut spec.domain.memory else {
        return;
    };
    let Memory {
        guest: Some(guest),
        max_guest: None,
        ..
    } = &*memory
    else {
        return;
    };
    let Ok(size) = Quantity::try_from(guest) else {
        return;
    };
    let bytes = size.bytes_ceil();
    if !pluggable || bytes < HOTPLUG_MINIMUM || bytes % HOTPLUG_BLOCK != 0 {
        return;
    }
    let most = (0..config.hotplug_ratio).fold(Quantity::ZERO, |sum, _| sum + size);
    memory.max_guest = Some(most.to_wire());
}
