//! Rules on volumes.

use std::collections::BTreeMap;

use super::{Candidate, Cause, Field, Reason, Rule, firmware::clean_path};
use crate::v1::{HostDisk, Volume};

pub(super) const RULES: &[Rule] = &[
    names_are_unique,
    each_volume_alone,
    one_service_account,
    host_disks_are_switched_on,
];

/// A rule that looks at one volume and its field.
type VolumeRule = fn(&Field, &Volume) -> Option<Cause>;

const VOLUME_RULES: &[VolumeRule] = &[
    one_source,
    data_volume_name,
    container_disk_path,
    host_disk_path,
    host_disk_type,
    host_disk_capacity,
    config_map_name,
    secret_name,
    service_account_name,
];

fn volumes<'a>(c: &Candidate<'a>) -> impl Iterator<Item = (usize, &'a Volume)> {
    c.spec.volumes.iter().flatten().enumerate()
}

/// Pairs of places of which the second repeats the name at the first.
pub(super) fn repeated<'a>(
    names: impl Iterator<Item = &'a str>,
) -> impl Iterator<Item = (usize, usize)> {
    let mut seen = BTreeMap::new();
    names
        .enumerate()
        .filter_map(move |(i, name)| match seen.get(name) {
            Some(first) => Some((*first, i)),
            None => {
                seen.insert(name, i);
                None
            }
        })
}

/// 120: names are unique.
fn names_are_unique(c: &Candidate<'_>) -> Vec<Cause> {
    let list = c.root.child("volumes");
    repeated(volumes(c).map(|(_, volume)| volume.name.as_str()))
        .map(|(first, again)| {
            let (field, other) = (list.index(again), list.index(first));
            let message = format!("{field} and {other} must not have the same Name.");
            Cause::invalid(&field.child("name"), message)
        })
        .collect()
}

fn each_volume_alone(c: &Candidate<'_>) -> Vec<Cause> {
    let list = c.root.child("volumes");
    volumes(c)
        .flat_map(|(i, volume)| {
            let field = list.index(i);
            VOLUME_RULES
                .iter()
                .filter_map(|rule| rule(&field, volume))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// 121: the bytes come from exactly one source.
fn one_source(field: &Field, volume: &Volume) -> Option<Cause> {
    (sources(volume) != 1).then(|| {
        Cause::invalid(
            field,
            format!("{field} must have exactly one source type set"),
        )
    })
}

fn sources(v: &Volume) -> usize {
    [
        v.container_disk.is_some(),
        v.empty_disk.is_some(),
        v.cloud_init_no_cloud.is_some(),
        v.cloud_init_config_drive.is_some(),
        v.persistent_volume_claim.is_some(),
        v.data_volume.is_some(),
        v.host_disk.is_some(),
        v.config_map.is_some(),
        v.secret.is_some(),
        v.service_account.is_some(),
        v.ephemeral.is_some(),
        v.sysprep.is_some(),
        v.memory_dump.is_some(),
        v.downward_metrics.is_some(),
        v.downward_api.is_some(),
        v.container_path.is_some(),
    ]
    .into_iter()
    .filter(|there| *there)
    .count()
}

/// 122: a DataVolume has a name.
fn data_volume_name(field: &Field, volume: &Volume) -> Option<Cause> {
    volume
        .data_volume
        .as_ref()?
        .name
        .is_empty()
        .then(|| Cause::required(&field.child("name"), "DataVolume 'name' must be set"))
}

/// 119: the path in an image is absolute and clean, and names a file.
fn container_disk_path(field: &Field, volume: &Volume) -> Option<Cause> {
    let path = volume.container_disk.as_ref()?.path.as_deref()?;
    clean_path(&field.child("containerDisk.path"), path)
}

fn host_disk(volume: &Volume) -> Option<&HostDisk> {
    volume.host_disk.as_ref()
}

/// 132: a disk on the node has a path.
fn host_disk_path(field: &Field, volume: &Volume) -> Option<Cause> {
    host_disk(volume)?.path.is_empty().then(|| {
        let field = field.child("hostDisk.path");
        Cause::new(
            Reason::NotFound,
            &field,
            format!("{field} is required for hostDisk volume"),
        )
    })
}

/// 133: it must exist, or is made.
fn host_disk_type(field: &Field, volume: &Volume) -> Option<Cause> {
    let type_ = &host_disk(volume)?.type_;
    (!matches!(type_.as_str(), "Disk" | "DiskOrCreate")).then(|| {
        let field = field.child("hostDisk.type");
        Cause::invalid(
            &field,
            format!("{field} has invalid value '{type_}', allowed are 'Disk' or 'DiskOrCreate'"),
        )
    })
}

/// 134: only a disk that is made has a size.
fn host_disk_capacity(field: &Field, volume: &Volume) -> Option<Cause> {
    let disk = host_disk(volume)?;
    (disk.type_ == "Disk" && disk.capacity.is_some()).then(|| {
        let field = field.child("hostDisk.capacity");
        Cause::invalid(
            &field,
            format!(
                "{field} is allowed to pass only with {} equal to 'DiskOrCreate'",
                "hostDisk.type"
            ),
        )
    })
}

fn named(field: &Field, name: Option<&str>) -> Option<Cause> {
    name.is_none_or(str::is_empty)
        .then(|| Cause::required(field, format!("{field} is a required field")))
}

/// 135: a ConfigMap has a name.
fn config_map_name(field: &Field, volume: &Volume) -> Option<Cause> {
    let source = volume.config_map.as_ref()?;
    named(&field.child("configMap.name"), source.name.as_deref())
}

/// 136: a Secret has a name.
fn secret_name(field: &Field, volume: &Volume) -> Option<Cause> {
    let source = volume.secret.as_ref()?;
    named(
        &field.child("secret.secretName"),
        source.secret_name.as_deref(),
    )
}

/// 137: a ServiceAccount has a name.
fn service_account_name(field: &Field, volume: &Volume) -> Option<Cause> {
    let source = volume.service_account.as_ref()?;
    named(
        &field.child("serviceAccount.serviceAccountName"),
        source.service_account_name.as_deref(),
    )
}

/// 138: a machine shows at most one ServiceAccount.
fn one_service_account(c: &Candidate<'_>) -> Vec<Cause> {
    let count = volumes(c)
        .filter(|(_, volume)| volume.service_account.is_some())
        .count();
    if count <= 1 {
        return vec![];
    }
    let field = c.root.child("volumes");
    vec![Cause::invalid(
        &field,
        format!("{field} must have max one serviceAccount volume set"),
    )]
}

/// 131: disks on the node are there only when the feature is switched on.
fn host_disks_are_switched_on(c: &Candidate<'_>) -> Vec<Cause> {
    if c.config.has_gate("HostDisk") {
        return vec![];
    }
    volumes(c)
        .filter(|(_, volume)| volume.host_disk.is_some())
        .map(|(i, _)| {
            Cause::invalid(
                &c.root.child("volumes").index(i),
                "HostDisk feature gate is not enabled",
            )
        })
        .collect()
}
