//! Rules on labels that the system itself relies on.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{Cause, Field, Reason};

/// Labels of VMIs that only the system's own controllers write.
const RESERVED: [&str; 6] = [
    "kubevirt.io/created-by",
    "kubevirt.io/migrationJobUID",
    "kubevirt.io/nodeName",
    "kubevirt.io/migrationTargetNodeName",
    "kubevirt.io/schedulable",
    "kubevirt.io/install-strategy",
];

/// 150: users do not set reserved labels.
#[must_use]
pub fn reserved_labels_set(metadata: &ObjectMeta) -> Option<Cause> {
    let labels = metadata.labels.as_ref()?;
    RESERVED.iter().any(|name| labels.contains_key(*name)).then(|| {
        Cause::not_supported(
            &Field::new("metadata.labels"),
            "creation of the following reserved kubevirt.io/ labels on a VMI object is prohibited",
        )
    })
}

/// 202: users do not change reserved labels.
#[must_use]
pub fn reserved_labels_changed(old: &ObjectMeta, new: &ObjectMeta) -> Option<Cause> {
    let empty = BTreeMap::new();
    let (old, new) = (
        old.labels.as_ref().unwrap_or(&empty),
        new.labels.as_ref().unwrap_or(&empty),
    );
    RESERVED.iter().any(|name| old.get(*name) != new.get(*name)).then(|| Cause {
        reason: Some(Reason::NotSupported),
        message: "modification of the following reserved kubevirt.io/ labels on a VMI object is prohibited".to_owned(),
        field: None,
    })
}
