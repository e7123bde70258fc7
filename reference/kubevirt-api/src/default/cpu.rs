//! Defaults of virtual CPUs.

use crate::{
    config::ClusterConfig,
    quantity::Quantity,
    v1::{Cpu, VirtualMachineInstanceSpec},
};

/// No machine has more virtual CPUs than this by plugging in sockets.
const MOST_CPUS: u32 = 512;

/// D7: a limit without a request is also the request.
pub(super) fn requests(spec: &mut VirtualMachineInstanceSpec) {
    let resources = &mut spec.domain.resources;
    if resources.request("cpu").is_some() {
        return;
    }
    if let Some(limit) = resources.limit("cpu").cloned() {
        resources
            .requests
            .get_or_insert_default()
            .insert("cpu".to_owned(), limit);
    }
}

/// D9: without any number there are as many sockets as host CPUs are asked for, or one.
pub(super) fn topology(spec: &mut VirtualMachineInstanceSpec) {
    let wanted = ["limits", "requests"].iter().find_map(|which| {
        let resources = &spec.domain.resources;
        let quantity = match *which {
            "limits" => resources.limit("cpu"),
            _ => resources.request("cpu"),
        };
        let value = Quantity::try_from(quantity?).ok()?.value();
        u32::try_from(value).ok().filter(|n| *n > 0)
    });
    let cpu = spec.domain.cpu.get_or_insert_default();
    let open = |number: Option<u32>| number.is_none_or(|n| n == 0);
    if open(cpu.sockets) && open(cpu.cores) && open(cpu.threads) {
        cpu.sockets = Some(wanted.unwrap_or(1));
        cpu.cores = Some(1);
        cpu.threads = Some(1);
    }
}

/// D10: the model of the cluster, else that of the host.
pub(super) fn model(spec: &mut VirtualMachineInstanceSpec, config: &ClusterConfig) {
    let cpu = spec.domain.cpu.get_or_insert_default();
    super::vm::fill(&mut cpu.model, || {
        config
            .cpu_model
            .clone()
            .filter(|model| !model.is_empty())
            .unwrap_or_else(|| "host-model".to_owned())
    });
}

/// D25: room for sockets that are plugged in later.
pub(super) fn max_sockets(spec: &mut VirtualMachineInstanceSpec, config: &ClusterConfig) {
    let cpu = spec.domain.cpu.get_or_insert_default();
    let Cpu {
        sockets: Some(sockets),
        max_sockets: None | Some(0),
        ..
    } = *cpu
    else {
        return;
    };
    if sockets == 0 {
        return;
    }
    let each = cpu
        .cores
        .unwrap_or(1)
        .max(1)
        .saturating_mul(cpu.threads.unwrap_or(1).max(1));
    let most = sockets.saturating_mul(config.hotplug_ratio);
    let fitting = (MOST_CPUS / each).max(sockets);
    cpu.max_sockets = Some(most.min(fitting));
}
