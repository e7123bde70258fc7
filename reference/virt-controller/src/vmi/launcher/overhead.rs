//! Memory that the launcher and the emulator need beside the guest's own: KubeVirt's arithmetic to
//! the byte, since schedulers and quotas see it.

use kubevirt_api::{
    quantity::Quantity,
    v1::{Probe, ResourceRequirements, VirtualMachineInstanceSpec},
};

const MIB: i128 = 1 << 20;
/// Monitor 25, launcher 100, log daemon 25, management daemon 40, emulator 30 in the original. We
/// reserve the same for our fewer processes, so that pods fit where they fitted.
const PROCESSES: i128 = 220 * MIB;
const EACH_VCPU: i128 = 8 * MIB;
const IO_THREAD: i128 = 8 * MIB;
const GRAPHICS: i128 = 32 * MIB;
const ARM64: i128 = 128 * MIB;
const ANY_EXEC_PROBE: i128 = 100 * MIB;
const EACH_EXEC_PROBE: i128 = 10 * MIB;
const GUARANTEED: i128 = 100 * MIB;
/// One byte of page tables for so many bytes of memory.
const PAGE_TABLE_RATIO: i128 = 512;

/// The overhead in bytes.
pub(super) fn bytes(spec: &VirtualMachineInstanceSpec) -> i64 {
    let devices = &spec.domain.devices;
    let parts = [
        page_tables(&spec.domain.resources),
        PROCESSES,
        EACH_VCPU * i128::from(vcpus(spec)),
        IO_THREAD,
        part(devices.autoattach_graphics_device != Some(false), GRAPHICS),
        part(spec.architecture.as_deref() == Some("arm64"), ARM64),
        exec_probes(spec),
        part(wants_guaranteed(spec), GUARANTEED),
    ];
    i64::try_from(parts.iter().sum::<i128>()).unwrap_or(i64::MAX)
}

fn part(counts: bool, amount: i128) -> i128 {
    if counts { amount } else { 0 }
}

/// Of the memory request as the user wrote it, in whole thousands of bytes.
fn page_tables(resources: &ResourceRequirements) -> i128 {
    let request = resources.request("memory").map(value).unwrap_or_default();
    let thousands = request.div_euclid(1000) + i128::from(request.rem_euclid(1000) != 0);
    thousands * 1000 / PAGE_TABLE_RATIO
}

fn value(quantity: &k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> i128 {
    Quantity::try_from(quantity).map_or(0, |q| q.value())
}

/// From the topology, else the CPU limit, else the CPU request; at least one.
pub(super) fn vcpus(spec: &VirtualMachineInstanceSpec) -> u32 {
    let resources = &spec.domain.resources;
    if let Some(cpu) = &spec.domain.cpu {
        let counts = [cpu.sockets, cpu.cores, cpu.threads];
        if counts.iter().any(|count| count.is_some_and(|n| n > 0)) {
            return counts.iter().fold(1_u32, |product, count| {
                product.saturating_mul(count.unwrap_or(1).max(1))
            });
        }
    }
    let amount = resources.limit("cpu").or_else(|| resources.request("cpu"));
    let amount = amount.map(value).unwrap_or_default();
    u32::try_from(amount).unwrap_or(u32::MAX).max(1)
}

fn exec_probes(spec: &VirtualMachineInstanceSpec) -> i128 {
    let probes = [&spec.readiness_probe, &spec.liveness_probe];
    let is_exec = |probe: &&&Option<Probe>| probe.as_ref().is_some_and(|p| p.exec.is_some());
    match i128::try_from(probes.iter().filter(is_exec).count()) {
        Ok(0) | Err(_) => 0,
        Ok(count) => ANY_EXEC_PROBE + EACH_EXEC_PROBE * count,
    }
}

/// Dedicated CPUs, or equal requests and limits of both CPU and memory.
fn wants_guaranteed(spec: &VirtualMachineInstanceSpec) -> bool {
    let cpu = spec.domain.cpu.as_ref();
    let dedicated = cpu.is_some_and(|cpu| cpu.dedicated_cpu_placement == Some(true));
    let resources = &spec.domain.resources;
    let equal = |name| {
        let (request, limit) = (resources.request(name), resources.limit(name));
        limit.is_some() && request.map(value) == limit.map(value)
    };
    dedicated || (equal("cpu") && equal("memory"))
}
