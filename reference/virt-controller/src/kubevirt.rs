//! The part of the KubeVirt resource that shapes launcher pods. It applies to new VMIs at once.

use kubevirt_api::v1::KubeVirtSpec;

/// Settings that shape launcher pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configuration {
    /// Guests may run without /dev/kvm.
    pub(crate) use_emulation: bool,
    /// Guest CPUs for each requested host CPU.
    pub(crate) cpu_allocation_ratio: u32,
    /// Percent of guest memory that is given out.
    pub(crate) memory_overcommit: u32,
    /// Pull policy of the launcher's image.
    pub(crate) image_pull_policy: String,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            use_emulation: false,
            cpu_allocation_ratio: 10,
            memory_overcommit: 100,
            image_pull_policy: "IfNotPresent".to_owned(),
        }
    }
}

impl Configuration {
    /// The settings of a KubeVirt resource; the defaults for what it does not say.
    pub(crate) fn of(spec: Option<&KubeVirtSpec>) -> Self {
        let default = Self::default();
        let Some(spec) = spec else { return default };
        let configuration = spec.configuration.as_ref();
        let developer = configuration.and_then(|c| c.developer_configuration.as_ref());
        let positive = |value: Option<i64>, default: u32| {
            value
                .and_then(|v| u32::try_from(v).ok())
                .filter(|v| *v > 0)
                .unwrap_or(default)
        };
        Self {
            use_emulation: spec.use_emulation(),
            cpu_allocation_ratio: positive(
                developer.and_then(|d| d.cpu_allocation_ratio),
                default.cpu_allocation_ratio,
            ),
            memory_overcommit: positive(
                developer.and_then(|d| d.memory_overcommit),
                default.memory_overcommit,
            ),
            image_pull_policy: configuration
                .and_then(|c| c.image_pull_policy.clone())
                .or_else(|| spec.image_pull_policy.clone())
                .unwrap_or(default.image_pull_policy),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::nothing_said(json!({}), Configuration::default())]
    #[case::emulation(
        json!({"configuration": {"developerConfiguration": {"useEmulation": true}}}),
        Configuration { use_emulation: true, ..Configuration::default() }
    )]
    #[case::nonsense_is_the_default(
        json!({"configuration": {"developerConfiguration": {"cpuAllocationRatio": 0, "memoryOvercommit": -5}}}),
        Configuration::default()
    )]
    #[case::own_pull_policy_wins(
        json!({"imagePullPolicy": "Never", "configuration": {"imagePullPolicy": "Always"}}),
        Configuration { image_pull_policy: "Always".to_owned(), ..Configuration::default() }
    )]
    fn reads(#[case] spec: Value, #[case] want: Configuration) {
        let spec: KubeVirtSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(Configuration::of(Some(&spec)), want);
    }
}
