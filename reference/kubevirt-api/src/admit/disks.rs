//! Rules on disks.

use std::collections::BTreeMap;

use super::{Candidate, Cause, Field, Rule, syntax};
use crate::v1::{Disk, Volume};

pub(super) const RULES: &[Rule] = &[
    disks_have_volumes,
    luns_are_claims,
    boot_order_is_unique,
    each_disk_alone,
    names_are_unique,
];

/// A rule that looks at one disk: its place among the disks, the field of the list, the disk.
type DiskRule = fn(&Field, usize, &Disk) -> Option<Cause>;

const DISK_RULES: &[DiskRule] = &[
    name_is_a_label,
    one_target,
    pci_address_needs_virtio,
    bus_is_served,
    cdrom_bus,
    no_read_only_sata,
    boot_order_is_positive,
    io_thread_needs_virtio,
    serial_characters,
    serial_length,
    cache_mode,
    io_mode,
    error_policy,
];

const BUSES: [&str; 4] = ["virtio", "scsi", "sata", "usb"];
const LONGEST_SERIAL: usize = 256;

fn list(c: &Candidate<'_>) -> Field {
    c.root.child("domain.devices.disks")
}

fn disks<'a>(c: &Candidate<'a>) -> impl Iterator<Item = (usize, &'a Disk)> {
    c.spec.domain.devices.disks.iter().flatten().enumerate()
}

fn volume<'a>(c: &Candidate<'a>, name: &str) -> Option<&'a Volume> {
    c.spec
        .volumes
        .iter()
        .flatten()
        .find(|volume| volume.name == name)
}

/// 96: each disk shows a volume; only a CD-ROM drive may be empty.
fn disks_have_volumes(c: &Candidate<'_>) -> Vec<Cause> {
    disks(c)
        .filter(|(_, disk)| disk.cdrom.is_none() && volume(c, &disk.name).is_none())
        .map(|(i, disk)| {
            let field = list(c).index(i);
            let message = format!("{field}.Name '{}' not found.", disk.name);
            Cause::invalid(&field.child("name"), message)
        })
        .collect()
}

/// 98: a LUN is a device of its own, so only claims can back it.
fn luns_are_claims(c: &Candidate<'_>) -> Vec<Cause> {
    disks(c)
        .filter(|(_, disk)| disk.lun.is_some())
        .filter(|(_, disk)| {
            volume(c, &disk.name)
                .is_some_and(|v| v.persistent_volume_claim.is_none() && v.data_volume.is_none())
        })
        .map(|(i, _)| {
            let field = list(c).index(i).child("lun");
            let message = format!(
                "{field} can only be mapped to a DataVolume or PersistentVolumeClaim volume."
            );
            Cause::invalid(&field, message)
        })
        .collect()
}

/// 100: no two devices have the same place in the boot order.
fn boot_order_is_unique(c: &Candidate<'_>) -> Vec<Cause> {
    let devices = &c.spec.domain.devices;
    let of_disks = devices
        .disks
        .iter()
        .flatten()
        .enumerate()
        .map(|(i, disk)| (list(c).index(i), disk.boot_order));
    let of_interfaces = devices
        .interfaces
        .iter()
        .flatten()
        .enumerate()
        .map(|(i, interface)| {
            let field = c.root.child("domain.devices.interfaces").index(i);
            (field, interface.boot_order)
        });
    let mut seen = BTreeMap::new();
    of_disks
        .chain(of_interfaces)
        .filter_map(|(field, order)| Some((field.child("bootOrder"), order?)))
        .filter_map(|(field, order)| {
            seen.insert(order, ()).map(|()| {
                let message = format!("Boot order for {field} already set for a different device.");
                Cause::invalid(&field, message)
            })
        })
        .collect()
}

fn each_disk_alone(c: &Candidate<'_>) -> Vec<Cause> {
    let list = list(c);
    disks(c)
        .flat_map(|(i, disk)| {
            DISK_RULES
                .iter()
                .filter_map(|rule| rule(&list, i, disk))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// 102: names are unique.
fn names_are_unique(c: &Candidate<'_>) -> Vec<Cause> {
    let names = disks(c).map(|(_, disk)| disk.name.as_str());
    super::volumes::repeated(names)
        .map(|(first, again)| {
            let (field, other) = (list(c).index(again), list(c).index(first));
            let message = format!("{field} and {other} must not have the same Name.");
            Cause::invalid(&field.child("name"), message)
        })
        .collect()
}

/// 103: the name is a DNS label.
fn name_is_a_label(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    (!syntax::is_dns_label(&disk.name))
        .then(|| Cause::invalid(&list.index(i).child("name"), syntax::DNS_LABEL_MESSAGE))
}

/// 104: a disk is one thing.
fn one_target(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let targets = [
        disk.disk.is_some(),
        disk.lun.is_some(),
        disk.cdrom.is_some(),
    ];
    let field = list.index(i);
    (targets.into_iter().filter(|there| *there).count() > 1).then(|| {
        Cause::invalid(
            &field,
            format!("{field} can only have a single target type defined"),
        )
    })
}

/// 105, 106: PCI addresses are for virtio disks, and well-formed.
fn pci_address_needs_virtio(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let target = disk.disk.as_ref()?;
    let address = target.pci_address.as_deref().filter(|a| !a.is_empty())?;
    // The original writes the path of the list twice here.
    let field = list.child("domain.devices.disks.disk").index(i);
    if target.bus.as_deref() != Some("virtio") {
        let message = format!(
            "disk {field}.name - setting a PCI address is only possible with bus type virtio."
        );
        return Some(Cause::invalid(&field.child("pciAddress"), message));
    }
    (!syntax::is_pci_address(address)).then(|| {
        let message = format!("disk {field}.name has malformed PCI address ({address}).");
        Cause::invalid(&field.child("pciAddress"), message)
    })
}

fn target(disk: &Disk) -> Option<(&'static str, Option<&str>)> {
    let disk_bus = disk.disk.as_ref().map(|t| ("disk", t.bus.as_deref()));
    let lun_bus = disk.lun.as_ref().map(|t| ("lun", t.bus.as_deref()));
    let cdrom_bus = disk.cdrom.as_ref().map(|t| ("cdrom", t.bus.as_deref()));
    disk_bus.or(lun_bus).or(cdrom_bus)
}

fn bus(disk: &Disk) -> Option<&str> {
    target(disk)?.1.filter(|bus| !bus.is_empty())
}

/// 107, 110: the bus is one that is served.
fn bus_is_served(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let (kind, _) = target(disk)?;
    let bus = bus(disk)?;
    let place = list.index(i);
    let field = place.child(kind).child("bus");
    match bus {
        "ide" => Some(Cause::invalid(&field, "IDE bus is not supported")),
        bus if BUSES.contains(&bus) => None,
        bus => Some(Cause::invalid(
            &field,
            format!(
                "{place} is set with an unrecognized bus {bus}, must be one of: [{}]",
                BUSES.join(" ")
            ),
        )),
    }
}

/// 108: no CD-ROM drive is a virtio device.
fn cdrom_bus(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let virtio = disk.cdrom.as_ref()?.bus.as_deref() == Some("virtio");
    virtio.then(|| {
        Cause::invalid(
            &list.index(i).child("cdrom.bus"),
            "Bus type virtio is invalid for CD-ROM device",
        )
    })
}

/// 109: SATA knows no read-only hard disks.
fn no_read_only_sata(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let target = disk.disk.as_ref()?;
    (target.bus.as_deref() == Some("sata") && target.read_only == Some(true)).then(|| {
        let field = list.index(i).child("disk.bus");
        Cause::invalid(
            &field,
            format!("{field} hard-disks do not support read-only."),
        )
    })
}

/// 101: places in the boot order count from one.
fn boot_order_is_positive(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let field = list.index(i);
    (disk.boot_order == Some(0)).then(|| {
        let message = format!("{field} must have a boot order > 0, if supplied");
        Cause::invalid(&field.child("bootOrder"), message)
    })
}

/// 111: only virtio disks can have an I/O thread of their own.
fn io_thread_needs_virtio(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let bus = bus(disk)?;
    (disk.dedicated_io_thread == Some(true) && bus != "virtio").then(|| {
        Cause::not_supported(
            &list.child("domain.devices.disks").index(i),
            format!("IOThreads are not supported for disks on a {bus} bus"),
        )
    })
}

/// 112: a serial number is made of plain characters.
fn serial_characters(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let serial = disk.serial.as_deref()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.+-".contains(c);
    let field = list.index(i);
    (!serial.chars().all(plain)).then(|| {
        let message = format!(
            "{field} must be made up of the following characters [A-Za-z0-9_.+-], if specified"
        );
        Cause::invalid(&field.child("serial"), message)
    })
}

/// 113: a serial number has at most 256 characters.
fn serial_length(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let field = list.index(i);
    (disk.serial.as_deref()?.chars().count() > LONGEST_SERIAL).then(|| {
        let message = format!(
            "{field} must be less than or equal to {LONGEST_SERIAL} in length, if specified"
        );
        Cause::invalid(&field.child("serial"), message)
    })
}

/// 114: the cache mode is one that exists.
fn cache_mode(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let mode = disk.cache.as_deref().filter(|mode| !mode.is_empty())?;
    let field = list.index(i).child("cache");
    (!matches!(mode, "none" | "writethrough" | "writeback"))
        .then(|| Cause::invalid(&field, format!("{field} has invalid value {mode}")))
}

/// 115: the I/O mode is one that exists.
fn io_mode(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let mode = disk.io.as_deref().filter(|mode| !mode.is_empty())?;
    (!matches!(mode, "native" | "threads")).then(|| {
        Cause::not_supported(
            &list.child("domain.devices.disks").index(i).child("io"),
            format!(
                "Disk IO mode for {list} is not supported. Supported modes are: native, threads."
            ),
        )
    })
}

/// 116: what happens on errors is something that exists.
fn error_policy(list: &Field, i: usize, disk: &Disk) -> Option<Cause> {
    let policy = disk.error_policy.as_deref()?;
    let field = list.index(i).child("errorPolicy");
    (!matches!(policy, "stop" | "ignore" | "report" | "enospace"))
        .then(|| Cause::invalid(&field, format!("{field} has invalid value \"{policy}\"")))
}
