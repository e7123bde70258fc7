//! Domains for the tests of this crate.

use virt_cmd::{
    Domain,
    domain::{Bus, Disk, Kernel},
};

/// The smallest machine, without anything to boot.
fn bare() -> Domain {
    Domain {
        uid: "0f8e6c1c-5a0f-4d7a-9a83-2b1f0a3f5c11".to_owned(),
        name: "vm".to_owned(),
        namespace: "default".to_owned(),
        memory_bytes: 128 << 20,
        vcpus: 1,
        machine: "q35".to_owned(),
        kernel: None,
        disks: Vec::new(),
        panic_device: false,
        paused: false,
        firmware_uuid: "5d307ca9-b3ef-428c-8861-06e72d69f223".to_owned(),
        log_serial: false,
    }
}

/// Boots a kernel and has nothing else.
pub(crate) fn kernel() -> Domain {
    let path = "/var/run/kubevirt-kernel-boot/boot/probe".into();
    Domain {
        kernel: Some(Kernel {
            path,
            initrd: None,
            cmdline: "quiet".to_owned(),
        }),
        ..bare()
    }
}

/// Boots a throw-away disk.
pub(crate) fn disk() -> Domain {
    Domain {
        disks: vec![container_disk("root", Bus::Virtio)],
        ..bare()
    }
}

/// Boots a kernel beside a disk.
pub(crate) fn kernel_and_disk() -> Domain {
    Domain {
        disks: vec![container_disk("root", Bus::Virtio)],
        ..kernel()
    }
}

/// A disk as the handler orders it for a containerDisk.
pub(crate) fn container_disk(name: &str, bus: Bus) -> Disk {
    Disk {
        name: name.to_owned(),
        path: format!("/var/run/kubevirt-image-volume/disk_0/disk/{name}.img").into(),
        bus,
        read_only: false,
        ephemeral: true,
        cdrom: false,
        serial: None,
        boot_order: None,
    }
}
