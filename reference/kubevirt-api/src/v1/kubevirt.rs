//! KubeVirt: the resource that asks virt-operator for a running system and configures it.

use k8s_openapi::api::core::v1::LocalObjectReference;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condition::Condition;

/// What the administrator asks of the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kubevirt.io",
    version = "v1",
    kind = "KubeVirt",
    namespaced,
    status = "KubeVirtStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtSpec {
    /// Tag of the images; the operator's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_tag: Option<String>,
    /// Registry of the images; the operator's own when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_registry: Option<String>,
    /// `Always`, `IfNotPresent` or `Never`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Secrets with the registry's credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_secrets: Option<Vec<LocalObjectReference>>,
    /// What deleting this resource does while VMs exist: RemoveWorkloads or BlockUninstallIfWorkloadsExist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninstall_strategy: Option<String>,
    /// Placement and number of the control-plane pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub infra: Option<ComponentConfig>,
    /// Settings that take effect at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub configuration: Option<KubeVirtConfiguration>,
    /// Lifetimes of certificates; taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub certificate_rotate_strategy: Option<Value>,
    /// Patches of the operator's objects; taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub customize_components: Option<Value>,
    /// How outdated launchers are replaced; taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub workload_update_strategy: Option<Value>,
    /// Placement of virt-handler and of launcher pods; taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub workloads: Option<Value>,
}

/// Placement and number of pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentConfig {
    /// Number of replicas; 2 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<u8>,
    /// Node placement; taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub node_placement: Option<Value>,
}

/// Settings that take effect at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtConfiguration {
    /// Settings for labs and developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_configuration: Option<DeveloperConfiguration>,
    /// Eviction strategy of VMIs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_strategy: Option<String>,
    /// Pull policy of the launcher's image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<String>,
    /// Machine type of VMIs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_type: Option<String>,
    /// CPU model of VMIs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_model: Option<String>,
    /// Patterns of machine types that may be asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulated_machines: Option<Vec<String>>,
    /// Networks of VMIs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkConfiguration>,
}

/// Networks of VMIs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkConfiguration {
    /// Binding of the interface that VMIs without networks get: `bridge` or `masquerade`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_network_interface: Option<String>,
    /// Whether the bridge binding is allowed on the pod network; on when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permit_bridge_interface_on_pod_network: Option<bool>,
}

/// Settings for labs and developers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeveloperConfiguration {
    /// Run guests by emulation, on nodes without hardware virtualization too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_emulation: Option<bool>,
    /// Features that are switched on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feature_gates: Option<Vec<String>>,
    /// Guest CPUs for each requested host CPU; 10 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_allocation_ratio: Option<i64>,
    /// Percent of guest memory that is requested; 100 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_overcommit: Option<i64>,
}

impl KubeVirtSpec {
    /// Whether guests run by emulation.
    #[must_use]
    pub fn use_emulation(&self) -> bool {
        self.configuration
            .as_ref()
            .and_then(|c| c.developer_configuration.as_ref())
            .and_then(|d| d.use_emulation)
            .unwrap_or(false)
    }
}

/// What is known of the system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeVirtStatus {
    /// `Deploying`, `Deployed`, `Deleting` or `Deleted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Version of the operator that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// Registry that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_kube_virt_registry: Option<String>,
    /// Version that is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_kube_virt_version: Option<String>,
    /// Fingerprint of the deployment that is wanted.
    #[serde(
        rename = "targetDeploymentID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub target_deployment_id: Option<String>,
    /// Registry that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_kube_virt_registry: Option<String>,
    /// Version that runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_kube_virt_version: Option<String>,
    /// Fingerprint of the deployment that runs.
    #[serde(
        rename = "observedDeploymentID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub observed_deployment_id: Option<String>,
    /// Generation of this resource that is fully in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// VMIs whose launcher has an older image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outdated_virtual_machine_instance_workloads: Option<i64>,
    /// Architecture of VMs that name none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_architecture: Option<String>,
    /// Objects that the operator wrote, with their generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generations: Option<Vec<GenerationStatus>>,
}

/// One object that the operator wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GenerationStatus {
    /// API group and version.
    pub group: String,
    /// Plural resource name.
    pub resource: String,
    /// Namespace, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// Generation after our last write.
    pub last_generation: i64,
}
