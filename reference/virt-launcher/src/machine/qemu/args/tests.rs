use rstest::rstest;
use virt_cmd::domain::Disk;

use super::*;
use crate::{files::Format, fixture};

fn image(disk: Disk, format: Format) -> Image {
    Image {
        file: disk.path.clone(),
        disk,
        format,
    }
}

fn images(domain: &Domain) -> Vec<Image> {
    domain
        .disks
        .iter()
        .map(|disk| image(disk.clone(), Format::Raw))
        .collect()
}

/// One option per line, as a person would read it.
fn lines(domain: &Domain, accelerator: Accelerator) -> String {
    build(domain, &images(domain), accelerator)
        .unwrap()
        .join(" ")
        .replace(" -", "\n-")
}

fn on(machine: &str, domain: Domain) -> Domain {
    Domain {
        machine: machine.to_owned(),
        ..domain
    }
}

#[test]
fn kernel_on_q35_emulated() {
    insta::assert_snapshot!(lines(&fixture::kernel(), Accelerator::Tcg));
}

#[test]
fn kernel_with_initrd_and_panic_device_on_pc() {
    let mut domain = on("pc", fixture::kernel());
    domain.panic_device = true;
    domain.kernel = domain.kernel.map(|kernel| Kernel {
        initrd: Some("/initrd".into()),
        ..kernel
    });
    insta::assert_snapshot!(lines(&domain, Accelerator::Kvm));
}

#[test]
fn kernel_and_disk_on_microvm() {
    insta::assert_snapshot!(lines(
        &on("microvm", fixture::kernel_and_disk()),
        Accelerator::Tcg
    ));
}

#[test]
fn disk_on_q35_with_kvm() {
    insta::assert_snapshot!(lines(&fixture::disk(), Accelerator::Kvm));
}

#[rstest]
#[case::q35("q35")]
#[case::pc("pc-i440fx-7.2")]
fn every_bus(#[case] machine: &str) {
    let mut domain = on(machine, fixture::disk());
    domain.disks = vec![
        Disk {
            boot_order: Some(2),
            ..fixture::container_disk("a", Bus::Virtio)
        },
        Disk {
            cdrom: true,
            ..fixture::container_disk("b", Bus::Sata)
        },
        Disk {
            serial: Some("S,1".to_owned()),
            ..fixture::container_disk("c", Bus::Sata)
        },
        Disk {
            ephemeral: false,
            ..fixture::container_disk("d", Bus::Scsi)
        },
        Disk {
            boot_order: Some(1),
            read_only: true,
            ..fixture::container_disk("e,f", Bus::Usb)
        },
    ];
    insta::with_settings!({ snapshot_suffix => machine }, {
        insta::assert_snapshot!(lines(&domain, Accelerator::Tcg));
    });
}

#[test]
fn the_format_is_always_said() {
    let images = [image(
        fixture::container_disk("root", Bus::Virtio),
        Format::Qcow2,
    )];
    let args = build(&fixture::disk(), &images, Accelerator::Tcg)
        .unwrap()
        .join(" ");
    assert!(args.contains("format=qcow2,snapshot=on"), "{args}");
}

#[rstest]
#[case("", "q35")]
#[case("pc-q35-7.2", "pc-q35-7.2")]
fn the_machine_that_is_built(#[case] asked: &str, #[case] built: &str) {
    let domain = on(asked, fixture::kernel());
    assert_eq!(machine_of(&domain), built);
    let args = build(&domain, &[], Accelerator::Tcg).unwrap().join(" ");
    assert!(
        args.contains(&format!("-machine {built},accel=tcg")),
        "{args}"
    );
}

#[rstest]
#[case::unknown(
    "s390-ccw-virtio",
    Bus::Virtio,
    false,
    "the machine type s390-ccw-virtio is not supported (q35, pc, microvm, or a version of the first two)"
)]
#[case::smuggled_option(
    "pc-q35-7.2,dumpdtb=/x",
    Bus::Virtio,
    false,
    "the machine type pc-q35-7.2,dumpdtb=/x is not supported (q35, pc, microvm, or a version of the first two)"
)]
#[case::no_sata(
    "microvm",
    Bus::Sata,
    false,
    "disk root is on the sata bus, which the machine type microvm does not have"
)]
#[case::virtio_cdrom(
    "q35",
    Bus::Virtio,
    true,
    "disk root is a CD-ROM drive on the virtio bus, which has none"
)]
fn what_cannot_be_built(
    #[case] machine: &str,
    #[case] bus: Bus,
    #[case] cdrom: bool,
    #[case] message: &str,
) {
    let mut domain = on(machine, fixture::disk());
    domain.disks = vec![Disk {
        cdrom,
        ..fixture::container_disk("root", bus)
    }];
    let error = build(&domain, &images(&domain), Accelerator::Tcg).unwrap_err();
    assert_eq!(error.to_string(), message);
}

#[test]
fn the_sata_controller_has_six_ports() {
    let disks = |count| vec![fixture::container_disk("d", Bus::Sata); count];
    let domain = |count| Domain {
        disks: disks(count),
        ..fixture::disk()
    };
    assert!(build(&domain(6), &images(&domain(6)), Accelerator::Tcg).is_ok());
    let error = build(&domain(7), &images(&domain(7)), Accelerator::Tcg).unwrap_err();
    assert_eq!(
        error,
        ArgsError::SataFull {
            disk: "d".to_owned()
        }
    );
}
