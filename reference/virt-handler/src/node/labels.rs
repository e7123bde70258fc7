//! The node's labels and annotations as one merge patch: pure, and only of keys that are virt-handler's own.

use std::collections::BTreeMap;

use kubevirt_api::names::{
    ANNOTATION_HEARTBEAT, LABEL_PREFIX_CPU_FEATURE, LABEL_PREFIX_CPU_MODEL,
    LABEL_PREFIX_MACHINE_TYPE, LABEL_SCHEDULABLE,
};
use serde_json::{Map, Value, json};

use super::cpu::CpuFacts;

const PREFIX_CPU_VENDOR: &str = "cpu-vendor.node.kubevirt.io/";
const PREFIX_HOST_MODEL: &str = "host-model-cpu.node.kubevirt.io/";
const ANNOTATION_KSM_MANAGED: &str = "kubevirt.io/ksm-handler-managed";
/// No policy of static processors is supported; both spellings are read by launcher pods.
const NO_CPU_MANAGER: [&str; 2] = ["kubevirt.io/cpumanager", "cpumanager"];
const KSM_ENABLED: &str = "kubevirt.io/ksm-enabled";

/// Label prefixes that belong to virt-handler: what is not said any more is taken away.
const OWN_PREFIXES: [&str; 5] = [
    LABEL_PREFIX_CPU_FEATURE,
    LABEL_PREFIX_CPU_MODEL,
    LABEL_PREFIX_MACHINE_TYPE,
    PREFIX_CPU_VENDOR,
    PREFIX_HOST_MODEL,
];

/// Machine types without a version.
const MACHINES: [&str; 4] = ["isapc", "microvm", "pc", "q35"];
/// Versions of both families, up to that of the launcher image's emulator.
const VERSIONS: [&str; 23] = [
    "2.4", "2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "3.0", "3.1", "4.0", "4.1",
    "4.2", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "7.0", "7.1", "7.2",
];
/// The one version that only q35 has.
const ONLY_Q35: &str = "pc-q35-4.0.1";

/// Machine types that a launcher on this node can build.
#[must_use]
pub fn machine_types() -> Vec<String> {
    let family = |prefix: &'static str| VERSIONS.map(|version| format!("{prefix}{version}"));
    MACHINES
        .into_iter()
        .chain([ONLY_Q35])
        .map(str::to_owned)
        .chain(family("pc-i440fx-"))
        .chain(family("pc-q35-"))
        .collect()
}

/// All labels but `schedulable`.
#[must_use]
pub fn capability_labels(cpu: &CpuFacts, ksm: bool) -> BTreeMap<String, String> {
    let yes = |prefix: &str, name: &str| (format!("{prefix}{name}"), "true".to_owned());
    let mut labels: BTreeMap<String, String> = machine_types()
        .iter()
        .map(|name| yes(LABEL_PREFIX_MACHINE_TYPE, name))
        .chain(
            cpu.features
                .iter()
                .map(|f| yes(LABEL_PREFIX_CPU_FEATURE, f)),
        )
        .chain(cpu.models.iter().map(|m| yes(LABEL_PREFIX_CPU_MODEL, m)))
        .chain(cpu.vendor.iter().map(|v| yes(PREFIX_CPU_VENDOR, v)))
        .chain(cpu.host_model.iter().map(|m| yes(PREFIX_HOST_MODEL, m)))
        .collect();
    for key in NO_CPU_MANAGER {
        labels.insert(key.to_owned(), "false".to_owned());
    }
    labels.insert(KSM_ENABLED.to_owned(), ksm.to_string());
    labels
}

/// The patch of one heartbeat; a node whose readiness for VMs is not known says nothing of it.
#[must_use]
pub fn heartbeat_patch(
    current: &BTreeMap<String, String>,
    capabilities: &BTreeMap<String, String>,
    schedulable: Option<bool>,
    now: &str,
) -> Value {
    let stale = current
        .keys()
        .filter(|key| OWN_PREFIXES.iter().any(|prefix| key.starts_with(prefix)))
        .filter(|key| !capabilities.contains_key(*key))
        .map(|key| (key.clone(), Value::Null));
    let wanted = capabilities
        .iter()
        .filter(|(key, value)| current.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), Value::from(value.clone())));
    let mut labels: Map<String, Value> = stale.chain(wanted).collect();
    if let Some(schedulable) = schedulable {
        labels.insert(LABEL_SCHEDULABLE.to_owned(), schedulable.to_string().into());
    }
    json!({"metadata": {
        "labels": labels,
        "annotations": {ANNOTATION_HEARTBEAT: now, ANNOTATION_KSM_MANAGED: "false"},
    }})
}

/// The last word of an orderly shutdown: nothing new is placed here until the next handler speaks.
#[must_use]
pub fn farewell_patch() -> Value {
    json!({"metadata": {"labels": {LABEL_SCHEDULABLE: "false"}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn only_own_keys_are_touched_and_stale_ones_go() {
        let current = map(&[
            ("kubernetes.io/hostname", "node-1"),
            ("cpu-feature.node.kubevirt.io/old", "true"),
            ("cpu-feature.node.kubevirt.io/aes", "true"),
            ("scheduling.node.kubevirt.io/tsc-frequency-1", "true"),
            ("kubevirt.io/schedulable", "false"),
        ]);
        let wanted = map(&[
            ("cpu-feature.node.kubevirt.io/aes", "true"),
            ("machine-type.node.kubevirt.io/q35", "true"),
        ]);
        let patch = heartbeat_patch(&current, &wanted, Some(true), "2026-11-30T23:34:04Z");
        assert_eq!(
            patch,
            json!({"metadata": {
                "labels": {
                    "cpu-feature.node.kubevirt.io/old": null,
                    "machine-type.node.kubevirt.io/q35": "true",
                    "kubevirt.io/schedulable": "true",
                },
                "annotations": {
                    "kubevirt.io/heartbeat": "2026-11-30T23:34:04Z",
                    "kubevirt.io/ksm-handler-managed": "false",
                },
            }})
        );
    }

    #[test]
    fn labels_of_a_small_processor() {
        let cpu = CpuFacts {
            vendor: Some("Intel".to_owned()),
            features: ["aes".to_owned()].into(),
            models: vec!["Nehalem"],
            host_model: Some("Nehalem"),
        };
        let labels = capability_labels(&cpu, false);
        for key in [
            "cpu-vendor.node.kubevirt.io/Intel",
            "cpu-feature.node.kubevirt.io/aes",
            "cpu-model.node.kubevirt.io/Nehalem",
            "host-model-cpu.node.kubevirt.io/Nehalem",
            "machine-type.node.kubevirt.io/q35",
            "machine-type.node.kubevirt.io/pc-q35-7.2",
            "machine-type.node.kubevirt.io/microvm",
        ] {
            assert_eq!(labels.get(key).map(String::as_str), Some("true"), "{key}");
        }
        assert_eq!(labels["kubevirt.io/cpumanager"], "false");
    }

    #[test]
    fn every_label_is_one_that_kubernetes_takes() {
        let facts = super::super::cpu::from_cpuinfo(
            "vendor_id : AuthenticAMD\nflags : lahf_lm sse4_1 fxsr_opt",
        );
        for (key, value) in capability_labels(&facts, true) {
            let name = key.rsplit('/').next().unwrap();
            assert!(name.len() <= 63 && value.len() <= 63, "{key}");
            assert!(
                name.chars()
                    .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)),
                "{key}"
            );
        }
    }
}
