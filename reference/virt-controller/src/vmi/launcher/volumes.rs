//! Volumes of the launcher pod: its working directories, and images as volumes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, ImageVolumeSource, LocalObjectReference, Volume, VolumeMount,
};
use kubevirt_api::v1::{KernelBootContainer, VirtualMachineInstanceSpec};

/// Working directories: volume name and where it is mounted.
const DIRECTORIES: [(&str, &str); 4] = [
    ("private", "/var/run/kubevirt-private"),
    ("public", "/var/run/kubevirt"),
    ("sockets", "/var/run/kubevirt/sockets"),
    ("ephemeral-disks", "/var/run/kubevirt-ephemeral-disks"),
];
const KERNEL_VOLUME: &str = "kernel-boot-volume";
const KERNEL_DIRECTORY: &str = "/var/run/kubevirt-kernel-boot";
const DISK_DIRECTORY: &str = "/var/run/kubevirt-image-volume/disk_";

/// An image that is shown to the launcher as a directory.
struct Image<'a> {
    volume: &'a str,
    path: String,
    reference: &'a str,
    pull_policy: Option<&'a String>,
    pull_secret: Option<&'a String>,
}

pub(super) fn volumes(spec: &VirtualMachineInstanceSpec) -> Vec<Volume> {
    let directories = DIRECTORIES.iter().map(|(name, _)| Volume {
        name: (*name).to_owned(),
        empty_dir: Some(EmptyDirVolumeSource::default()),
        ..Volume::default()
    });
    let images = images(spec).into_iter().map(|image| Volume {
        name: image.volume.to_owned(),
        image: Some(ImageVolumeSource {
            reference: Some(image.reference.to_owned()),
            pull_policy: image.pull_policy.cloned(),
        }),
        ..Volume::default()
    });
    directories.chain(images).collect()
}

pub(super) fn mounts(spec: &VirtualMachineInstanceSpec) -> Vec<VolumeMount> {
    let directories = DIRECTORIES.iter().map(|(name, path)| VolumeMount {
        name: (*name).to_owned(),
        mount_path: (*path).to_owned(),
        ..VolumeMount::default()
    });
    let images = images(spec).into_iter().map(|image| VolumeMount {
        name: image.volume.to_owned(),
        mount_path: image.path,
        read_only: Some(true),
        ..VolumeMount::default()
    });
    directories.chain(images).collect()
}

/// Each secret once.
pub(super) fn pull_secrets(spec: &VirtualMachineInstanceSpec) -> Option<Vec<LocalObjectReference>> {
    let secrets: BTreeSet<String> = images(spec)
        .into_iter()
        .filter_map(|image| image.pull_secret.cloned())
        .collect();
    let secrets = secrets
        .into_iter()
        .map(|name| LocalObjectReference { name });
    let secrets: Vec<_> = secrets.collect();
    (!secrets.is_empty()).then_some(secrets)
}

/// The number in a disk's path is the volume's place in the spec: virt-handler counts alike.
fn images(spec: &VirtualMachineInstanceSpec) -> Vec<Image<'_>> {
    let disks = spec.volumes.iter().flatten().enumerate();
    let disks = disks.filter_map(|(index, volume)| {
        let source = volume.container_disk.as_ref()?;
        Some(Image {
            volume: &volume.name,
            path: format!("{DISK_DIRECTORY}{index}"),
            reference: &source.image,
            pull_policy: source.image_pull_policy.as_ref(),
            pull_secret: source.image_pull_secret.as_ref(),
        })
    });
    disks.chain(kernel(spec).map(kernel_image)).collect()
}

fn kernel(spec: &VirtualMachineInstanceSpec) -> Option<&KernelBootContainer> {
    let firmware = spec.domain.firmware.as_ref()?;
    firmware.kernel_boot.as_ref()?.container.as_ref()
}

fn kernel_image(source: &KernelBootContainer) -> Image<'_> {
    Image {
        volume: KERNEL_VOLUME,
        path: KERNEL_DIRECTORY.to_owned(),
        reference: &source.image,
        pull_policy: source.image_pull_policy.as_ref(),
        pull_secret: source.image_pull_secret.as_ref(),
    }
}
