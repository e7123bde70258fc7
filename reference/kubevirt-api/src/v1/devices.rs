//! Disks, interfaces and the other devices of a machine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Devices of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Devices {
    /// Disks; each shows the volume of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disks: Option<Vec<Disk>>,
    /// Network interfaces; each joins the network of the same name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<Interface>>,
    /// Add the pod network when no interface is given; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoattach_pod_interface: Option<bool>,
    /// Add a graphics device; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoattach_graphics_device: Option<bool>,
    /// Add a serial console; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoattach_serial_console: Option<bool>,
    /// Copy the serial console to the launcher's log; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_serial_console: Option<bool>,
    /// Add a memory balloon; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoattach_mem_balloon: Option<bool>,
    /// Directories that the guest shares with the pod; taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_list")]
    pub filesystems: Option<Vec<Value>>,
    /// Watchdog; not served, but completed as the original does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub watchdog: Option<Value>,
    /// Random number generator for the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rng: Option<Rng>,
    /// Devices by which a guest tells that it panicked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panic_devices: Option<Vec<PanicDevice>>,
}

/// Random number generator; no options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rng {}

/// A device by which a guest tells that it panicked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PanicDevice {
    /// `isa`, `hyperv` or `pvpanic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// One disk of the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Name of the volume that the disk shows.
    #[serde(default)]
    pub name: String,
    /// An ordinary disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskTarget>,
    /// A raw LUN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<LunTarget>,
    /// A CD-ROM drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cdrom: Option<CdRomTarget>,
    /// Place in the boot order, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_order: Option<u32>,
    /// Serial number that the guest sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Cache mode: `none`, `writethrough` or `writeback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// I/O mode: `native`, `default` or `threads`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<String>,
    /// A mark that tools in the guest may look for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Give the disk an I/O thread of its own.
    #[serde(
        rename = "dedicatedIOThread",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub dedicated_io_thread: Option<bool>,
    /// What a failing host disk does: `stop`, `ignore`, `report` or `enospace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_policy: Option<String>,
    /// Block sizes that the guest sees; taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub block_size: Option<Value>,
    /// Let other machines write to the disk too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shareable: Option<bool>,
}

/// Options of an ordinary disk.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskTarget {
    /// `virtio`, `sata`, `scsi` or `usb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// PCI address of a virtio disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
    /// The guest may not write.
    #[serde(rename = "readonly", default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// Options of a raw LUN.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LunTarget {
    /// `virtio`, `sata` or `scsi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// The guest may not write.
    #[serde(rename = "readonly", default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Pass SCSI persistent reservations on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<bool>,
}

/// Options of a CD-ROM drive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CdRomTarget {
    /// `sata`, `scsi` or `usb`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// The guest may not write; on when unset.
    #[serde(rename = "readonly", default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `open` or `closed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tray: Option<String>,
}

/// One network interface of the guest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interface {
    /// Name of the network that the interface joins.
    #[serde(default)]
    pub name: String,
    /// `virtio`, `e1000`, `e1000e`, `rtl8139`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Hardware address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
    /// Bridge the guest onto the pod's interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<InterfaceBridge>,
    /// Hide the guest behind the pod's address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masquerade: Option<InterfaceMasquerade>,
    /// Hand a virtual function of a network card to the guest; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub sriov: Option<Value>,
    /// User-mode network stack; discontinued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub slirp: Option<Value>,
    /// Macvtap binding; discontinued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub macvtap: Option<Value>,
    /// Old passt binding; discontinued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub passt: Option<Value>,
    /// Passt binding; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub passt_binding: Option<Value>,
    /// Binding by a plug-in; not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub binding: Option<Value>,
    /// PCI address in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pci_address: Option<String>,
    /// Link state: `up`, `down` or `absent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// Ports that are forwarded to the guest; all when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<Port>>,
    /// Place in the boot order, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_order: Option<u32>,
}

/// Bridge binding; no options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceBridge {}

/// Masquerade binding; no options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceMasquerade {}

/// One port of an interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// Name, unique in the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `TCP` or `UDP`; `TCP` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Port number.
    #[serde(default)]
    pub port: i32,
}
