//! The machine that virt-handler orders: everything the launcher must know, and nothing of Kubernetes.
//!
//! Unknown fields are refused: a launcher that does not understand an order in full must not build
//! half of it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// One virtual machine. Paths are as seen inside the launcher's pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Uid of the VirtualMachineInstance.
    pub uid: String,
    /// Its name, for log lines and the guest's process name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Guest memory in bytes. The handler has rounded it up to a whole MiB.
    pub memory_bytes: u64,
    /// Virtual processors, at least one.
    pub vcpus: u32,
    /// Machine type as the user wrote it (`q35`, `pc`, `pc-q35-7.2`, `microvm`); empty means `q35`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine: String,
    /// The kernel to boot directly; without it the firmware boots a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Kernel>,
    /// Disks in the order of the VMI's `devices.disks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<Disk>,
    /// The guest gets a pvpanic device, and a panic ends the machine.
    #[serde(default)]
    pub panic_device: bool,
    /// Start with the processors stopped.
    #[serde(default)]
    pub paused: bool,
    /// SMBIOS system uuid (8-4-4-4-12 hexadecimal digits).
    pub firmware_uuid: String,
    /// Copy the guest's serial lines to the launcher's standard output.
    #[serde(default)]
    pub log_serial: bool,
}

/// Files of a direct kernel boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// A bzImage, or an ELF file with a PVH note.
    pub path: PathBuf,
    /// The initial ramdisk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initrd: Option<PathBuf>,
    /// The kernel's command line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cmdline: String,
}

/// One disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Disk {
    /// Name of the disk in the VMI.
    pub name: String,
    /// The image, raw or qcow2; or a directory that holds exactly one image (a containerDisk's `/disk`).
    pub path: PathBuf,
    /// How the guest is attached to it.
    #[serde(default)]
    pub bus: Bus,
    /// The guest must not write.
    #[serde(default)]
    pub read_only: bool,
    /// The image itself must not change: what the guest writes is thrown away at the end (containerDisk).
    #[serde(default)]
    pub ephemeral: bool,
    /// The guest sees a CD-ROM drive.
    #[serde(default)]
    pub cdrom: bool,
    /// Serial number that the guest can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// 1 boots first. Without any order the first disk boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_order: Option<u32>,
}

/// The buses of KubeVirt's disk targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bus {
    /// Paravirtual, what every cloud image expects.
    #[default]
    Virtio,
    /// An AHCI port.
    Sata,
    /// A LUN of a virtio-scsi controller.
    Scsi,
    /// A USB stick.
    Usb,
}

/// Why an order was refused.
#[derive(Debug, Error)]
pub enum DomainError {
    /// Not JSON, or not of this shape.
    #[error("the domain cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// A value that no machine can have.
    #[error("the domain's {field} is {value}, expected {expected}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it may hold.
        expected: &'static str,
    },
}

impl Domain {
    /// Reads an order and checks what a type cannot say.
    ///
    /// # Errors
    /// [`DomainError`] when it is not a domain or a value is out of its range.
    pub fn from_json(text: &str) -> Result<Self, DomainError> {
        let domain: Self = serde_json::from_str(text)?;
        domain.check()?;
        Ok(domain)
    }

    /// The order as it travels.
    ///
    /// # Errors
    /// [`DomainError::Unreadable`] when a path is not UTF-8.
    pub fn to_json(&self) -> Result<String, DomainError> {
        Ok(serde_json::to_string(self)?)
    }

    fn check(&self) -> Result<(), DomainError> {
        let invalid = |field, value: String, expected| DomainError::Invalid {
            field,
            value,
            expected,
        };
        if self.uid.is_empty() {
            return Err(invalid("uid", "empty".to_owned(), "the instance's uid"));
        }
        if self.vcpus == 0 {
            return Err(invalid("vcpus", "0".to_owned(), "at least 1"));
        }
        if self.memory_bytes < MIB || !self.memory_bytes.is_multiple_of(MIB) {
            return Err(invalid(
                "memory_bytes",
                self.memory_bytes.to_string(),
                "a positive multiple of 1 MiB",
            ));
        }
        Ok(())
    }
}

const MIB: u64 = 1 << 20;
