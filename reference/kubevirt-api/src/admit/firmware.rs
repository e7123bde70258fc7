//! Rules on machine type, firmware and direct kernel boot.

use super::{Candidate, Cause, Field, Rule, syntax};
use crate::v1::{Firmware, KernelBootContainer};

pub(super) const RULES: &[Rule] = &[
    machine_type,
    one_bootloader,
    secure_boot_needs_smm,
    kernel_args_need_a_kernel,
    kernel_image,
    kernel_or_initrd,
    kernel_paths,
    io_threads_policy,
    panic_devices,
];

fn firmware<'a>(c: &Candidate<'a>) -> Option<&'a Firmware> {
    c.spec.domain.firmware.as_ref()
}

/// 33: the machine type is one that may be asked for.
fn machine_type(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(machine) = c
        .spec
        .domain
        .machine
        .as_ref()
        .filter(|m| !m.type_.is_empty())
    else {
        return vec![];
    };
    let allowed = &c.config.emulated_machines;
    if allowed
        .iter()
        .any(|glob| syntax::matches_glob(glob, &machine.type_))
    {
        return vec![];
    }
    let field = c.root.child("domain.machine.type");
    let message = format!(
        "{field} is not supported: {} (allowed values: [{}])",
        machine.type_,
        allowed.join(" ")
    );
    vec![Cause::invalid(&field, message)]
}

/// 40: BIOS or EFI, not both.
fn one_bootloader(c: &Candidate<'_>) -> Vec<Cause> {
    match firmware(c).and_then(|f| f.bootloader.as_ref()) {
        Some(loader) if loader.bios.is_some() && loader.efi.is_some() => {
            let field = c.root.child("domain.firmware.bootloader");
            let message = format!(
                "{field} has both EFI and BIOS configured, but they are mutually exclusive."
            );
            vec![Cause::invalid(&field, message)]
        }
        _ => vec![],
    }
}

/// 41: secure boot, which EFI has unless told otherwise, needs system management mode.
fn secure_boot_needs_smm(c: &Candidate<'_>) -> Vec<Cause> {
    let efi = firmware(c).and_then(|f| f.bootloader.as_ref()?.efi.as_ref());
    let secure = efi.is_some_and(|efi| efi.secure_boot.unwrap_or(true));
    let smm = c.spec.domain.features.as_ref().and_then(|f| f.smm.as_ref());
    if !secure || smm.is_some_and(|smm| smm.enabled.unwrap_or(true)) {
        return vec![];
    }
    let field = c.root.child("domain");
    let message = format!(
        "{field} has EFI SecureBoot enabled. SecureBoot requires SMM, which is currently disabled."
    );
    vec![Cause::invalid(&field, message)]
}

fn kernel_container<'a>(c: &Candidate<'a>) -> Option<&'a KernelBootContainer> {
    firmware(c)?.kernel_boot.as_ref()?.container.as_ref()
}

fn kernel_field(c: &Candidate<'_>) -> Field {
    c.root.child("domain.firmware.kernelBoot")
}

/// 42: arguments are for a kernel.
fn kernel_args_need_a_kernel(c: &Candidate<'_>) -> Vec<Cause> {
    let boot = firmware(c).and_then(|f| f.kernel_boot.as_ref());
    match boot {
        Some(boot)
            if boot.container.is_none()
                && boot.kernel_args.as_ref().is_some_and(|a| !a.is_empty()) =>
        {
            vec![Cause::invalid(
                &kernel_field(c).child("kernelArgs"),
                "kernel arguments cannot be provided without an external kernel",
            )]
        }
        _ => vec![],
    }
}

/// 43: the kernel comes in an image.
fn kernel_image(c: &Candidate<'_>) -> Vec<Cause> {
    match kernel_container(c) {
        Some(container) if container.image.is_empty() => {
            let field = kernel_field(c).child("container");
            let message = format!("{field} must be defined with an image");
            vec![Cause::required(&field.child("image"), message)]
        }
        _ => vec![],
    }
}

/// 44: the image is there for a kernel or an initial RAM disk.
fn kernel_or_initrd(c: &Candidate<'_>) -> Vec<Cause> {
    let empty = |path: &Option<String>| path.as_ref().is_none_or(String::is_empty);
    match kernel_container(c) {
        Some(container) if empty(&container.kernel_path) && empty(&container.initrd_path) => {
            let field = kernel_field(c).child("container");
            let message = format!(
                "{field} must be defined with at least one of the following: kernelPath, initrdPath"
            );
            vec![Cause::required(&field, message)]
        }
        _ => vec![],
    }
}

/// 45: paths in the image are absolute and clean, and name a file.
fn kernel_paths(c: &Candidate<'_>) -> Vec<Cause> {
    let Some(container) = kernel_container(c) else {
        return vec![];
    };
    let field = kernel_field(c).child("container");
    [
        ("kernelPath", &container.kernel_path),
        ("initrdPath", &container.initrd_path),
    ]
    .into_iter()
    .filter_map(|(name, path)| clean_path(&field.child(name), path.as_deref()?))
    .collect()
}

/// What is wrong with a path inside an image; nothing with an empty one.
pub(super) fn clean_path(field: &Field, path: &str) -> Option<Cause> {
    if path.is_empty() {
        return None;
    }
    if path == "/" {
        return Some(Cause::invalid(
            field,
            format!("{field} must not point to root"),
        ));
    }
    let clean = path
        .strip_prefix('/')
        .is_some_and(|rest| rest.split('/').all(|part| !matches!(part, "" | "." | "..")));
    (!clean).then(|| {
        Cause::invalid(
            field,
            format!("{field} must be an absolute path to a file without relative elements"),
        )
    })
}

/// 62: the policy of I/O threads is one that exists.
fn io_threads_policy(c: &Candidate<'_>) -> Vec<Cause> {
    match c.spec.domain.io_threads_policy.as_deref() {
        Some(word) if !matches!(word, "shared" | "auto" | "supplementalPool") => {
            vec![Cause::invalid(
                &c.root.child("domain.ioThreadsPolicy"),
                format!("Invalid IOThreadsPolicy ({word})"),
            )]
        }
        _ => vec![],
    }
}

/// 72: panic devices are of a known model.
fn panic_devices(c: &Candidate<'_>) -> Vec<Cause> {
    let field = c.root.child("domain.devices.panicDevices");
    c.spec
        .domain
        .devices
        .panic_devices
        .iter()
        .flatten()
        .enumerate()
        .filter_map(|(i, device)| {
            let model = device.model.as_deref()?;
            (!matches!(model, "hyperv" | "isa" | "pvpanic")).then(|| {
                Cause::invalid(
                    &field.index(i).child("model"),
                    format!("invalid PanicDeviceModel({model})"),
                )
            })
        })
        .collect()
}

/// 87, for VMIs only: the architecture is one that exists.
pub(super) fn architecture_is_known(c: &Candidate<'_>) -> Vec<Cause> {
    match c.spec.architecture.as_deref() {
        Some(word) if !matches!(word, "amd64" | "arm64" | "s390x" | "") => vec![Cause::invalid(
            &c.root.child("architecture"),
            format!("unsupported architecture: {word}"),
        )],
        _ => vec![],
    }
}
