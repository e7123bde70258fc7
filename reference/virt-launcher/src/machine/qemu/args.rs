//! QEMU's command line, as a pure function of the domain and its images.

use std::path::Path;

use thiserror::Error;
use virt_cmd::{
    Domain,
    domain::{Bus, Kernel},
};

use crate::files::Image;

#[cfg(test)]
mod tests;

/// The descriptors that the child inherits, see the parent module.
const QMP_FD: u32 = 0;
const SERIAL_FD: u32 = 1;
/// Ports of the AHCI controller.
const SATA_PORTS: usize = 6;

/// Who executes the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accelerator {
    Kvm,
    Tcg,
}

/// What the domain asks for and QEMU cannot give.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum ArgsError {
    /// Not one of ours.
    #[error(
        "the machine type {0} is not supported (q35, pc, microvm, or a version of the first two)"
    )]
    Machine(String),
    /// No such controller on this machine.
    #[error("disk {disk} is on the {bus} bus, which the machine type {machine} does not have")]
    Bus {
        disk: String,
        bus: &'static str,
        machine: String,
    },
    /// A controller has a fixed number of ports.
    #[error("disk {disk} is the seventh on the sata bus, which has {SATA_PORTS} ports")]
    SataFull { disk: String },
    /// A paravirtual disk is no CD-ROM drive.
    #[error("disk {disk} is a CD-ROM drive on the {bus} bus, which has none")]
    Cdrom { disk: String, bus: &'static str },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Q35,
    Pc,
    Microvm,
}

/// The machine type that is built for a domain.
pub(crate) fn machine_of(domain: &Domain) -> &str {
    if domain.machine.is_empty() {
        "q35"
    } else {
        &domain.machine
    }
}

/// All arguments.
pub(crate) fn build(
    domain: &Domain,
    images: &[Image],
    accelerator: Accelerator,
) -> Result<Vec<String>, ArgsError> {
    let machine = machine_of(domain);
    let family = family_of(machine)?;
    let mut args = Args::default();
    base(&mut args, domain);
    args.pair("-machine", machine_options(machine, family, accelerator));
    args.pair("-cpu", cpu(accelerator));
    if let Some(kernel) = &domain.kernel {
        boot_kernel(&mut args, family, kernel);
    }
    if domain.panic_device {
        args.pair("-device", "pvpanic");
    }
    disks(&mut args, machine, family, images)?;
    Ok(args.list)
}

#[derive(Default)]
struct Args {
    list: Vec<String>,
}

impl Args {
    fn flag(&mut self, flag: &str) {
        self.list.push(flag.to_owned());
    }

    fn pair(&mut self, flag: &str, value: impl Into<String>) {
        self.flag(flag);
        self.list.push(value.into());
    }
}

fn family_of(machine: &str) -> Result<Family, ArgsError> {
    match machine {
        "q35" => Ok(Family::Q35),
        "pc" => Ok(Family::Pc),
        "microvm" => Ok(Family::Microvm),
        versioned if versioned.starts_with("pc-q35-") && is_plain(versioned) => Ok(Family::Q35),
        versioned if versioned.starts_with("pc-i440fx-") && is_plain(versioned) => Ok(Family::Pc),
        other => Err(ArgsError::Machine(other.to_owned())),
    }
}

/// Nothing that could add another option.
fn is_plain(word: &str) -> bool {
    word.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

fn base(args: &mut Args, domain: &Domain) {
    args.pair(
        "-name",
        escaped(&format!("guest={}_{}", domain.namespace, domain.name)),
    );
    args.flag("-nodefaults");
    args.flag("-no-user-config");
    args.pair("-display", "none");
    // The guest runs when QMP says so.
    args.flag("-S");
    args.pair(
        "-sandbox",
        "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    );
    // Resets stay inside; power-off and panic keep the process until their cause has been read.
    args.pair("-action", "reboot=reset,shutdown=pause,panic=pause");
    args.pair("-chardev", format!("socket,id=qmp,fd={QMP_FD}"));
    args.pair("-mon", "chardev=qmp,mode=control");
    args.pair("-chardev", format!("socket,id=serial0,fd={SERIAL_FD}"));
    args.pair("-serial", "chardev:serial0");
    args.pair("-smp", domain.vcpus.to_string());
    args.pair("-m", format!("{}M", domain.memory_bytes >> 20));
    args.pair("-rtc", "base=utc");
    if !domain.firmware_uuid.is_empty() {
        args.pair("-uuid", &domain.firmware_uuid);
    }
}

fn machine_options(machine: &str, family: Family, accelerator: Accelerator) -> String {
    let accelerator = match accelerator {
        // System management mode is firmware's private business, and not every KVM has it.
        Accelerator::Kvm => "accel=kvm,smm=off",
        Accelerator::Tcg => "accel=tcg",
    };
    match family {
        Family::Q35 | Family::Pc => format!("{machine},{accelerator}"),
        // ACPI is this machine's only way to a power button and to power off.
        Family::Microvm => format!("{machine},{accelerator},acpi=on,auto-kernel-cmdline=off"),
    }
}

fn cpu(accelerator: Accelerator) -> &'static str {
    match accelerator {
        // There are hosts that announce this register and refuse its value, which ends QEMU.
        Accelerator::Kvm => "host,arch-capabilities=off",
        Accelerator::Tcg => "max",
    }
}

fn boot_kernel(args: &mut Args, family: Family, kernel: &Kernel) {
    if family != Family::Microvm {
        // A kernel needs nothing of SeaBIOS, which takes seconds where real mode is emulated.
        args.pair("-bios", "qboot.rom");
    }
    args.pair("-kernel", text(&kernel.path));
    if let Some(initrd) = &kernel.initrd {
        args.pair("-initrd", text(initrd));
    }
    if !kernel.cmdline.is_empty() {
        args.pair("-append", &kernel.cmdline);
    }
}

/// Each disk is a block node and a device; each kind of controller is made when its first disk needs it.
fn disks(
    args: &mut Args,
    machine: &str,
    family: Family,
    images: &[Image],
) -> Result<(), ArgsError> {
    let mut sata = 0;
    let any_order = images.iter().any(|image| image.disk.boot_order.is_some());
    for (index, image) in images.iter().enumerate() {
        let disk = &image.disk;
        let bus = disk.bus;
        if family == Family::Microvm && matches!(bus, Bus::Sata | Bus::Usb) {
            let (disk, bus, machine) = (disk.name.clone(), bus_name(bus), machine.to_owned());
            return Err(ArgsError::Bus { disk, bus, machine });
        }
        if disk.cdrom && matches!(bus, Bus::Virtio | Bus::Usb) {
            return Err(ArgsError::Cdrom {
                disk: disk.name.clone(),
                bus: bus_name(bus),
            });
        }
        if bus == Bus::Sata && sata == SATA_PORTS {
            return Err(ArgsError::SataFull {
                disk: disk.name.clone(),
            });
        }
        if images[..index]
            .iter()
            .all(|earlier| earlier.disk.bus != bus)
            && let Some(controller) = controller(bus, family)
        {
            args.pair("-device", controller);
        }
        args.pair("-drive", drive(index, image));
        let mut device = match bus {
            Bus::Virtio if family == Family::Microvm => "virtio-blk-device".to_owned(),
            Bus::Virtio => "virtio-blk-pci".to_owned(),
            Bus::Sata => format!(
                "{},bus={}.{sata}",
                pick(disk.cdrom, "ide-cd", "ide-hd"),
                sata_bus(family)
            ),
            Bus::Scsi => format!("{},bus=scsi0.0", pick(disk.cdrom, "scsi-cd", "scsi-hd")),
            Bus::Usb => "usb-storage,bus=usb0.0".to_owned(),
        };
        sata += usize::from(bus == Bus::Sata);
        device.push_str(&format!(",drive=drive{index},id=disk{index}"));
        if let Some(serial) = &disk.serial {
            device.push_str(&format!(",serial={}", escaped(serial)));
        }
        let order = if any_order {
            disk.boot_order
        } else {
            u32::try_from(index + 1).ok()
        };
        if let Some(order) = order {
            device.push_str(&format!(",bootindex={order}"));
        }
        args.pair("-device", device);
    }
    Ok(())
}

fn drive(index: usize, image: &Image) -> String {
    let mut drive = format!("if=none,id=drive{index},format={}", image.format.name());
    match (
        image.disk.read_only || image.disk.cdrom,
        image.disk.ephemeral,
    ) {
        (true, _) => drive.push_str(",readonly=on"),
        // QEMU writes to a nameless file below TMPDIR and opens the image itself for reading only.
        (false, true) => drive.push_str(",snapshot=on"),
        (false, false) => drive.push_str(",discard=unmap"),
    }
    // The file comes last: it is the one value with arbitrary characters.
    drive.push_str(&format!(",file={}", escaped(&text(&image.file))));
    drive
}

fn controller(bus: Bus, family: Family) -> Option<&'static str> {
    match (bus, family) {
        (Bus::Virtio, _) | (Bus::Sata, Family::Q35 | Family::Microvm) => None,
        (Bus::Sata, Family::Pc) => Some("ich9-ahci,id=sata0"),
        (Bus::Scsi, Family::Microvm) => Some("virtio-scsi-device,id=scsi0"),
        (Bus::Scsi, Family::Q35 | Family::Pc) => Some("virtio-scsi-pci,id=scsi0"),
        (Bus::Usb, _) => Some("qemu-xhci,id=usb0"),
    }
}

/// q35 has an AHCI controller of its own, under the name of the older bus.
fn sata_bus(family: Family) -> &'static str {
    if family == Family::Q35 {
        "ide"
    } else {
        "sata0"
    }
}

fn bus_name(bus: Bus) -> &'static str {
    match bus {
        Bus::Virtio => "virtio",
        Bus::Sata => "sata",
        Bus::Scsi => "scsi",
        Bus::Usb => "usb",
    }
}

fn pick(condition: bool, yes: &'static str, no: &'static str) -> &'static str {
    if condition { yes } else { no }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A comma would end the option.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}
