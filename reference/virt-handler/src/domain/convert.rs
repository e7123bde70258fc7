//! From the VMI that the user asked for to the domain that the launcher builds: a pure function.
//! What this version cannot build is an error that names it; nothing is left out silently.

use std::path::Path;

use kubevirt_api::v1::{
    Disk, Firmware, VirtualMachineInstance, VirtualMachineInstanceSpec, Volume,
};
use virt_cmd::{
    Domain,
    domain::{self, Bus, Kernel},
    paths,
};

use super::quantity::{self, BadQuantity};

/// Where a containerDisk's image is when its path is not given.
const DISK_DIR: &str = "disk";

/// Why a VMI cannot become a domain.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The API server gives every stored object these.
    #[error("the object has no {0}")]
    Incomplete(&'static str),
    /// Neither guest memory nor a request or limit.
    #[error("no memory is given")]
    NoMemory,
    /// A quantity that cannot be used.
    #[error(transparent)]
    Quantity(#[from] BadQuantity),
    /// More processors than can be counted.
    #[error("the cpu topology is too large")]
    Topology,
    /// A disk that shows nothing.
    #[error("disk {0} has no volume of its name")]
    NoVolume(String),
    /// A kind of volume that this version does not build.
    #[error("volume {0} is of a kind that is not supported")]
    VolumeKind(String),
    /// A bus that does not exist.
    #[error("disk {disk} has the unknown bus {bus}")]
    Bus {
        /// The disk.
        disk: String,
        /// What it says.
        bus: String,
    },
    /// A kernel boot that names no kernel.
    #[error("kernelBoot names no kernel")]
    NoKernel,
}

/// The domain for this VMI.
pub fn domain_of(vmi: &VirtualMachineInstance) -> Result<Domain, ConvertError> {
    let meta = &vmi.metadata;
    let spec = &vmi.spec;
    let hardware = &spec.domain;
    let uid = meta.uid.clone().ok_or(ConvertError::Incomplete("uid"))?;
    let firmware = hardware.firmware.as_ref();
    let serial = hardware.devices.autoattach_serial_console.unwrap_or(true)
        && hardware.devices.log_serial_console.unwrap_or(true);
    Ok(Domain {
        name: meta.name.clone().ok_or(ConvertError::Incomplete("name"))?,
        namespace: meta
            .namespace
            .clone()
            .ok_or(ConvertError::Incomplete("namespace"))?,
        memory_bytes: memory(spec)?,
        vcpus: processors(spec)?,
        machine: hardware
            .machine
            .as_ref()
            .map(|machine| machine.type_.clone())
            .unwrap_or_default(),
        kernel: firmware.and_then(kernel).transpose()?,
        disks: disks(spec)?,
        panic_device: hardware
            .devices
            .panic_devices
            .as_ref()
            .is_some_and(|devices| !devices.is_empty()),
        paused: spec.start_strategy.as_deref() == Some("Paused"),
        firmware_uuid: firmware
            .and_then(|f| f.uuid.clone())
            .unwrap_or_else(|| uid.clone()),
        log_serial: serial,
        uid,
    })
}

fn memory(spec: &VirtualMachineInstanceSpec) -> Result<u64, ConvertError> {
    let resources = &spec.domain.resources;
    let guest = spec.domain.memory.as_ref().and_then(|m| m.guest.as_ref());
    let candidates = [
        guest,
        resources.request("memory"),
        resources.limit("memory"),
    ];
    for quantity in candidates.into_iter().flatten() {
        let bytes = quantity::memory_bytes(quantity)?;
        if bytes > 0 {
            return Ok(bytes);
        }
    }
    Err(ConvertError::NoMemory)
}

fn processors(spec: &VirtualMachineInstanceSpec) -> Result<u32, ConvertError> {
    let topology = spec.domain.cpu.as_ref().and_then(|cpu| {
        let given = [cpu.cores, cpu.sockets, cpu.threads];
        given.iter().any(Option::is_some).then_some(given)
    });
    if let Some(topology) = topology {
        return topology
            .into_iter()
            .flatten()
            .filter(|n| *n > 0)
            .try_fold(1u32, u32::checked_mul)
            .ok_or(ConvertError::Topology);
    }
    let resources = &spec.domain.resources;
    let asked = resources.limit("cpu").or_else(|| resources.request("cpu"));
    Ok(asked.map(quantity::count).transpose()?.unwrap_or(1).max(1))
}

fn kernel(firmware: &Firmware) -> Option<Result<Kernel, ConvertError>> {
    let boot = firmware.kernel_boot.as_ref()?;
    let in_image = |path: &String| Path::new(paths::KERNEL_BOOT_DIR).join(relative(path));
    let container = boot.container.as_ref();
    let path = container.and_then(|c| c.kernel_path.as_ref());
    Some(
        path.map(in_image)
            .ok_or(ConvertError::NoKernel)
            .map(|path| Kernel {
                path,
                initrd: container.and_then(|c| c.initrd_path.as_ref()).map(in_image),
                cmdline: boot.kernel_args.clone().unwrap_or_default(),
            }),
    )
}

fn disks(spec: &VirtualMachineInstanceSpec) -> Result<Vec<domain::Disk>, ConvertError> {
    let volumes = spec.volumes.as_deref().unwrap_or_default();
    let disks = spec.domain.devices.disks.as_deref().unwrap_or_default();
    disks.iter().map(|disk| one_disk(disk, volumes)).collect()
}

fn one_disk(disk: &Disk, volumes: &[Volume]) -> Result<domain::Disk, ConvertError> {
    let (index, volume) = volumes
        .iter()
        .enumerate()
        .find(|(_, volume)| volume.name == disk.name)
        .ok_or_else(|| ConvertError::NoVolume(disk.name.clone()))?;
    let source = volume
        .container_disk
        .as_ref()
        .ok_or_else(|| ConvertError::VolumeKind(volume.name.clone()))?;
    let image = source.path.as_deref().map_or(DISK_DIR, relative);
    let target = disk.disk.as_ref();
    let cdrom = disk.cdrom.as_ref();
    Ok(domain::Disk {
        name: disk.name.clone(),
        path: paths::image_volume(index).join(image),
        bus: bus(disk)?,
        read_only: cdrom.is_some() || target.and_then(|t| t.read_only).unwrap_or(false),
        ephemeral: true,
        cdrom: cdrom.is_some(),
        serial: disk.serial.clone(),
        boot_order: disk.boot_order,
    })
}

fn bus(disk: &Disk) -> Result<Bus, ConvertError> {
    let word = disk
        .disk
        .as_ref()
        .and_then(|t| t.bus.as_deref())
        .or_else(|| disk.cdrom.as_ref().and_then(|t| t.bus.as_deref()))
        .or_else(|| disk.lun.as_ref().and_then(|t| t.bus.as_deref()));
    match word {
        Some("virtio") => Ok(Bus::Virtio),
        Some("scsi") => Ok(Bus::Scsi),
        Some("usb") => Ok(Bus::Usb),
        Some("sata") | None => Ok(Bus::Sata),
        Some(other) => Err(ConvertError::Bus {
            disk: disk.name.clone(),
            bus: other.to_owned(),
        }),
    }
}

/// A path of the image, taken relative to where the image is mounted.
fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn vmi(spec: Value) -> VirtualMachineInstance {
        serde_json::from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {"name": "a", "namespace": "default", "uid": "db4c9825-539a-4502-b18c-0a2af069e3d2"},
            "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn a_kernel_boot_with_a_disk() {
        let domain = domain_of(&vmi(json!({
            "domain": {
                "cpu": {"cores": 2, "sockets": 2, "threads": 1},
                "memory": {"guest": "100M"},
                "machine": {"type": "q35"},
                "firmware": {"uuid": "c7490c8d-be9a-419c-b8b1-3ada31cdf51e", "kernelBoot": {
                    "kernelArgs": "quiet",
                    "container": {"image": "r/k:1", "kernelPath": "/boot/probe", "initrdPath": "boot/initrd"}}},
                "devices": {
                    "panicDevices": [{"model": "pvpanic"}],
                    "disks": [{"name": "cd", "bootOrder": 1, "disk": {"bus": "virtio"}}]},
            },
            "startStrategy": "Paused",
            "volumes": [{"name": "other", "emptyDisk": {"capacity": "1Gi"}},
                        {"name": "cd", "containerDisk": {"image": "r/d:1"}}],
        })))
        .unwrap();
        insta::assert_json_snapshot!(domain);
    }

    #[rstest]
    #[case(json!({"resources": {"requests": {"memory": "64Mi", "cpu": "1500m"}}}), 64 << 20, 2)]
    #[case(json!({"resources": {"limits": {"memory": "512Mi"}}}), 512 << 20, 1)]
    #[case(json!({"memory": {"guest": "1Gi"}, "resources": {"requests": {"memory": "64Mi"}}}), 1 << 30, 1)]
    #[case(json!({"memory": {"guest": "0"}, "resources": {"requests": {"memory": "64Mi"}}}), 64 << 20, 1)]
    fn memory_and_processors(#[case] domain: Value, #[case] bytes: u64, #[case] vcpus: u32) {
        let domain = domain_of(&vmi(json!({"domain": domain}))).unwrap();
        assert_eq!((domain.memory_bytes, domain.vcpus), (bytes, vcpus));
        assert_eq!(domain.firmware_uuid, domain.uid);
        assert!(domain.log_serial);
    }

    #[test]
    fn a_given_path_names_the_image_file_itself() {
        let domain = domain_of(&vmi(json!({
            "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "d", "cdrom": {"bus": "sata"}}]}},
            "volumes": [{"name": "d", "containerDisk": {"image": "r/d:1", "path": "/iso/x.iso"}}],
        })))
        .unwrap();
        let disk = &domain.disks[0];
        assert_eq!(
            disk.path,
            Path::new("/var/run/kubevirt-image-volume/disk_0/iso/x.iso")
        );
        assert!(disk.cdrom && disk.read_only);
    }

    #[rstest]
    #[case(json!({"domain": {}}), ConvertError::NoMemory)]
    #[case(json!({"domain": {"memory": {"guest": "64Mi"}, "firmware": {"kernelBoot": {"kernelArgs": "x"}}}}), ConvertError::NoKernel)]
    #[case(json!({"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "d", "disk": {}}]}}}), ConvertError::NoVolume("d".to_owned()))]
    #[case(json!({"domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": [{"name": "d", "disk": {}}]}},
                  "volumes": [{"name": "d", "emptyDisk": {"capacity": "1Gi"}}]}), ConvertError::VolumeKind("d".to_owned()))]
    #[case(json!({"domain": {"memory": {"guest": "64Mi"}, "cpu": {"cores": 65536, "sockets": 65536}}}), ConvertError::Topology)]
    fn what_cannot_be_built_is_named(#[case] spec: Value, #[case] error: ConvertError) {
        assert_eq!(domain_of(&vmi(spec)), Err(error));
    }
}
