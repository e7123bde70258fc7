//! Defaults of a VirtualMachineInstance: everything that the controllers would otherwise guess.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{NewId, cpu, devices, memory, vm::fill};
use crate::{
    config::ClusterConfig,
    names::{ANNOTATION_PCI_TOPOLOGY_VERSION, FINALIZER_FOREGROUND_DELETE_VMI},
    v1::{
        CpuTopology, MemoryStatus, PhaseTransitionTimestamp, Probe, VirtualMachineInstance,
        VirtualMachineInstancePhase, VirtualMachineInstanceSpec,
    },
};

/// User that launchers run as.
const LAUNCHER_USER: u64 = 107;

/// Fills in D6 to D26 and D30.
pub fn virtual_machine_instance(
    vmi: &mut VirtualMachineInstance,
    config: &ClusterConfig,
    new_id: NewId<'_>,
) {
    let spec = &mut vmi.spec;
    fill(&mut spec.architecture, || config.architecture.clone());
    let machine = spec.domain.machine.get_or_insert_default();
    if machine.type_.is_empty() {
        machine.type_.clone_from(&config.machine_type);
    }
    cpu::requests(spec);
    memory::guest(spec);
    memory::max_guest(spec, config);
    cpu::topology(spec);
    cpu::model(spec, config);
    cpu::max_sockets(spec, config);
    devices::pull_policies(spec);
    fill(&mut spec.eviction_strategy, || {
        config.eviction_strategy.clone()
    });
    devices::network(spec, config);
    devices::disks(spec);
    devices::watchdog(spec);
    let firmware = spec.domain.firmware.get_or_insert_default();
    fill(&mut firmware.uuid, new_id);
    features(spec);
    for probe in [&mut spec.readiness_probe, &mut spec.liveness_probe]
        .into_iter()
        .flatten()
    {
        probe_times(probe);
    }
    vmi.metadata
        .annotations
        .get_or_insert_default()
        .entry(ANNOTATION_PCI_TOPOLOGY_VERSION.to_owned())
        .or_insert_with(|| "v3".to_owned());
}

/// D21: a feature that is mentioned is on; ACPI is always mentioned.
fn features(spec: &mut VirtualMachineInstanceSpec) {
    let features = spec.domain.features.get_or_insert_default();
    features
        .acpi
        .get_or_insert_default()
        .enabled
        .get_or_insert(true);
    if let Some(smm) = &mut features.smm {
        smm.enabled.get_or_insert(true);
    }
}

/// D19: the same times as for probes of containers.
fn probe_times(probe: &mut Probe) {
    let fill = |place: &mut Option<i32>, value: i32| {
        if place.is_none_or(|number| number == 0) {
            *place = Some(value);
        }
    };
    fill(&mut probe.timeout_seconds, 1);
    fill(&mut probe.period_seconds, 10);
    fill(&mut probe.success_threshold, 1);
    fill(&mut probe.failure_threshold, 3);
}

/// D27 to D29: the first status, and the finalizer that lets the machine go before the object does.
pub fn seed_status(vmi: &mut VirtualMachineInstance, now: &Time) {
    let finalizers = vmi.metadata.finalizers.get_or_insert_default();
    if !finalizers
        .iter()
        .any(|f| f == FINALIZER_FOREGROUND_DELETE_VMI)
    {
        finalizers.push(FINALIZER_FOREGROUND_DELETE_VMI.to_owned());
    }
    let domain = &vmi.spec.domain;
    let status = vmi.status.get_or_insert_default();
    status.phase = Some(VirtualMachineInstancePhase::Pending);
    status.phase_transition_timestamps = Some(vec![PhaseTransitionTimestamp {
        phase: VirtualMachineInstancePhase::Pending,
        phase_transition_timestamp: now.clone(),
    }]);
    status.runtime_user = Some(LAUNCHER_USER);
    status.guest_os_info.get_or_insert_default();
    if let Some(cpu) = &domain.cpu {
        let known = |number: Option<u32>| number.filter(|n| *n > 0);
        status.current_cpu_topology = Some(CpuTopology {
            cores: known(cpu.cores),
            sockets: known(cpu.sockets),
            threads: known(cpu.threads),
        });
    }
    if let Some(guest) = domain.memory.as_ref().and_then(|m| m.guest.as_ref()) {
        status.memory = Some(MemoryStatus {
            guest_at_boot: Some(guest.clone()),
            guest_current: Some(guest.clone()),
            guest_requested: Some(guest.clone()),
            ..MemoryStatus::default()
        });
    }
}
