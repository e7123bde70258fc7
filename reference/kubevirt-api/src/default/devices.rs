//! Defaults of disks, interfaces and image pull policies.

use serde_json::{Value, json};

use crate::{
    config::ClusterConfig,
    v1::{
        Disk, DiskTarget, Interface, InterfaceBridge, InterfaceMasquerade, Network, PodNetwork,
        VirtualMachineInstanceSpec,
    },
};

/// Bus of disks that name none, on amd64.
const DEFAULT_BUS: &str = "sata";

/// D11: images that may change under their name are looked up anew each time.
pub(super) fn pull_policies(spec: &mut VirtualMachineInstanceSpec) {
    for volume in spec.volumes.iter_mut().flatten() {
        if let Some(disk) = &mut volume.container_disk {
            super::vm::fill(&mut disk.image_pull_policy, || policy_for(&disk.image));
        }
    }
    let container = spec
        .domain
        .firmware
        .as_mut()
        .and_then(|f| f.kernel_boot.as_mut())
        .and_then(|k| k.container.as_mut());
    if let Some(container) = container {
        super::vm::fill(&mut container.image_pull_policy, || {
            policy_for(&container.image)
        });
    }
}

fn policy_for(image: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    let fixed = image.contains('@') || name.split_once(':').is_some_and(|(_, tag)| tag != "latest");
    if fixed { "IfNotPresent" } else { "Always" }.to_owned()
}

/// D13: a machine that says nothing about networks joins the pod's.
pub(super) fn network(spec: &mut VirtualMachineInstanceSpec, config: &ClusterConfig) {
    let devices = &mut spec.domain.devices;
    let has = spec.networks.as_ref().is_some_and(|list| !list.is_empty())
        || devices
            .interfaces
            .as_ref()
            .is_some_and(|list| !list.is_empty());
    if has || devices.autoattach_pod_interface == Some(false) {
        return;
    }
    let mut interface = Interface {
        name: "default".to_owned(),
        ..Interface::default()
    };
    if config.default_interface == "masquerade" {
        interface.masquerade = Some(InterfaceMasquerade {});
    } else {
        interface.bridge = Some(InterfaceBridge {});
    }
    devices.interfaces = Some(vec![interface]);
    spec.networks = Some(vec![Network {
        name: "default".to_owned(),
        pod: Some(PodNetwork::default()),
        ..Network::default()
    }]);
}

/// D14 to D17: each volume has a disk, each disk a target, each target a bus.
pub(super) fn disks(spec: &mut VirtualMachineInstanceSpec) {
    let devices = &mut spec.domain.devices;
    let shares: Vec<&str> = devices
        .filesystems
        .iter()
        .flatten()
        .filter_map(|share| share["name"].as_str())
        .collect();
    for volume in spec.volumes.iter().flatten() {
        let disks = devices.disks.get_or_insert_default();
        let shown = disks.iter().any(|disk| disk.name == volume.name);
        if !shown && !shares.contains(&volume.name.as_str()) {
            disks.push(Disk {
                name: volume.name.clone(),
                ..Disk::default()
            });
        }
    }
    for disk in devices.disks.iter_mut().flatten() {
        target(disk);
    }
}

/// D24: a watchdog is of the kind that amd64 has, and resets the machine.
pub(super) fn watchdog(spec: &mut VirtualMachineInstanceSpec) {
    let Some(Value::Object(watchdog)) = &mut spec.domain.devices.watchdog else {
        return;
    };
    if watchdog.contains_key("diag288") {
        return;
    }
    let kind = watchdog.entry("i6300esb").or_insert_with(|| json!({}));
    if kind["action"].as_str().is_none_or(str::is_empty) {
        kind["action"] = json!("reset");
    }
}

fn target(disk: &mut Disk) {
    if disk.disk.is_none() && disk.lun.is_none() && disk.cdrom.is_none() {
        disk.disk = Some(DiskTarget::default());
    }
    let bus = || DEFAULT_BUS.to_owned();
    if let Some(disk) = &mut disk.disk {
        super::vm::fill(&mut disk.bus, bus);
    }
    if let Some(lun) = &mut disk.lun {
        super::vm::fill(&mut lun.bus, bus);
    }
    if let Some(cdrom) = &mut disk.cdrom {
        super::vm::fill(&mut cdrom.bus, bus);
        super::vm::fill(&mut cdrom.tray, || "closed".to_owned());
        cdrom.read_only.get_or_insert(true);
    }
}
