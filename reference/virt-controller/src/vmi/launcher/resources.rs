//! Requests and limits of the launcher's container.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity as Wire,
};
use kubevirt_api::{
    names,
    quantity::{Format, Quantity},
    v1::{Cpu, VirtualMachineInstanceSpec},
};

use super::overhead;
use crate::kubevirt::Configuration;

const CPU: &str = "cpu";
const MEMORY: &str = "memory";
const EPHEMERAL: &str = "ephemeral-storage";
/// Logs and other small files of the launcher.
const EPHEMERAL_EXTRA: i64 = 50_000_000;

type Amounts = BTreeMap<String, Quantity>;

/// What the user asked for, with the launcher's share and the devices on top.
pub(super) fn resources(
    spec: &VirtualMachineInstanceSpec,
    configuration: &Configuration,
    overhead: i64,
) -> ResourceRequirements {
    let asked = &spec.domain.resources;
    let mut amounts = Both {
        requests: read(asked.requests.as_ref()),
        limits: read(asked.limits.as_ref()),
    };
    amounts.add_ephemeral_storage();
    amounts.add_devices(spec, configuration);
    amounts.set_cpu(spec, configuration);
    amounts.set_memory(spec, configuration, overhead);
    ResourceRequirements {
        requests: Some(write(&amounts.requests)),
        limits: (!amounts.limits.is_empty()).then(|| write(&amounts.limits)),
        claims: None,
    }
}

struct Both {
    requests: Amounts,
    limits: Amounts,
}

impl Both {
    fn add_ephemeral_storage(&mut self) {
        let extra = Quantity::from_units(EPHEMERAL_EXTRA, Format::DecimalSi);
        add(&mut self.requests, EPHEMERAL, extra);
        if self.limits.contains_key(EPHEMERAL) {
            add(&mut self.limits, EPHEMERAL, extra);
        }
    }

    fn add_devices(&mut self, spec: &VirtualMachineInstanceSpec, configuration: &Configuration) {
        let one = Quantity::from_units(1, Format::DecimalSi);
        if !configuration.use_emulation {
            self.limits.insert(names::RESOURCE_KVM.to_owned(), one);
        }
        if has_network(spec) {
            self.limits.insert(names::RESOURCE_TUN.to_owned(), one);
        }
    }

    fn set_cpu(&mut self, spec: &VirtualMachineInstanceSpec, configuration: &Configuration) {
        let vcpus = i64::from(overhead::vcpus(spec));
        if let Some(cpu) = spec.domain.cpu.as_ref().filter(|c| is_dedicated(c)) {
            let emulator = i64::from(cpu.isolate_emulator_thread == Some(true));
            let whole = Quantity::from_units(vcpus + emulator, Format::DecimalSi);
            self.requests.insert(CPU.to_owned(), whole);
            self.limits.insert(CPU.to_owned(), whole);
            return;
        }
        if self.requests.contains_key(CPU) || self.limits.contains_key(CPU) {
            return;
        }
        let ratio = i64::from(configuration.cpu_allocation_ratio);
        let share = Quantity::from_millis(vcpus.saturating_mul(1000) / ratio);
        self.requests.insert(CPU.to_owned(), share);
    }

    fn set_memory(
        &mut self,
        spec: &VirtualMachineInstanceSpec,
        configuration: &Configuration,
        overhead: i64,
    ) {
        let guest = guest_memory(spec);
        if !self.requests.contains_key(MEMORY) {
            let basis = self.limits.get(MEMORY).copied().or(guest);
            let share = basis.map(|b| overcommitted(b, configuration.memory_overcommit));
            self.requests.extend(share.map(|s| (MEMORY.to_owned(), s)));
        }
        let dedicated = spec.domain.cpu.as_ref().is_some_and(is_dedicated);
        if dedicated && let Some(request) = self.requests.get(MEMORY) {
            self.limits.insert(MEMORY.to_owned(), *request);
        }
        if let (Some(size), Some(guest)) = (hugepage_size(spec), guest) {
            self.set_hugepages(size, guest, overhead);
            return;
        }
        let overhead = Quantity::from_bytes(overhead);
        if spec.domain.resources.overcommit_guest_overhead != Some(true) {
            add(&mut self.requests, MEMORY, overhead);
        }
        if self.limits.contains_key(MEMORY) {
            add(&mut self.limits, MEMORY, overhead);
        }
    }

    /// The guest's memory comes from huge pages; ordinary memory is only for the rest.
    fn set_hugepages(&mut self, size: &str, guest: Quantity, overhead: i64) {
        let name = format!("hugepages-{size}");
        self.requests.insert(name.clone(), guest);
        self.limits.insert(name, guest);
        let rest = self.requests.get(MEMORY).map(|request| *request - guest);
        let rest = rest.filter(|rest| !rest.is_negative() && !rest.is_zero());
        let overhead = Quantity::from_units(overhead, Format::DecimalSi);
        let total = rest.map_or(overhead, |rest| rest + overhead);
        self.requests.insert(MEMORY.to_owned(), total);
        if self.limits.contains_key(MEMORY) {
            self.limits.insert(MEMORY.to_owned(), total);
        }
    }
}

fn add(amounts: &mut Amounts, name: &str, more: Quantity) {
    let sum = amounts.get(name).map_or(more, |amount| *amount + more);
    amounts.insert(name.to_owned(), sum);
}

/// Admission refuses amounts that cannot be read; one that came around it does not count.
fn read(amounts: Option<&BTreeMap<String, Wire>>) -> Amounts {
    let amounts = amounts.into_iter().flatten();
    amounts
        .filter_map(|(name, wire)| Some((name.clone(), Quantity::try_from(wire).ok()?)))
        .collect()
}

fn write(amounts: &Amounts) -> BTreeMap<String, Wire> {
    let amounts = amounts.iter();
    amounts
        .map(|(name, amount)| (name.clone(), amount.to_wire()))
        .collect()
}

fn is_dedicated(cpu: &Cpu) -> bool {
    cpu.dedicated_cpu_placement == Some(true)
}

fn has_network(spec: &VirtualMachineInstanceSpec) -> bool {
    let devices = &spec.domain.devices;
    let interfaces = devices.interfaces.as_ref();
    interfaces.is_some_and(|list| !list.is_empty())
        || devices.autoattach_pod_interface != Some(false)
}

fn hugepage_size(spec: &VirtualMachineInstanceSpec) -> Option<&str> {
    let memory = spec.domain.memory.as_ref()?;
    memory.hugepages.as_ref()?.page_size.as_deref()
}

/// Memory that the guest sees; one huge page when only those are asked for.
fn guest_memory(spec: &VirtualMachineInstanceSpec) -> Option<Quantity> {
    let memory = spec.domain.memory.as_ref();
    let guest = memory.and_then(|m| m.guest.as_ref());
    let guest = guest.and_then(|wire| Quantity::try_from(wire).ok());
    guest.or_else(|| Quantity::parse(hugepage_size(spec)?).ok())
}

fn overcommitted(basis: Quantity, percent: u32) -> Quantity {
    if percent == 100 {
        return basis;
    }
    let share = basis.value().saturating_mul(100) / i128::from(percent.max(1));
    Quantity::from_units(i64::try_from(share).unwrap_or(i64::MAX), basis.format())
}
