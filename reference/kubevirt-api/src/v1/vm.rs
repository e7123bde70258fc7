//! VirtualMachine: the wish that a machine exists, whether it runs or not.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{condition::Condition, vmi::VirtualMachineInstanceSpec};

/// What the user asks of a VirtualMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kubevirt.io",
    version = "v1",
    kind = "VirtualMachine",
    namespaced,
    status = "VirtualMachineStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineSpec {
    /// Old form of runStrategy: true is Always, false is Halted. Not together with runStrategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<bool>,
    /// When the machine runs: Always, Halted, Manual, RerunOnFailure, Once or WaitAsReceiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_strategy: Option<RunStrategy>,
    /// The VirtualMachineInstance to make.
    pub template: VirtualMachineInstanceTemplateSpec,
    /// Templates of DataVolumes that the VM owns; taken as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_list")]
    pub data_volume_templates: Option<Vec<Value>>,
    /// Reference to an instancetype; taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub instancetype: Option<Value>,
    /// Reference to a preference; taken as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub preference: Option<Value>,
    /// How changed volumes take effect: Replacement or Migration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_volumes_strategy: Option<String>,
}

/// Schema of a list whose members are kept as they are.
pub(crate) fn opaque_list(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
    })
}

/// Schema of an object that is kept as it is.
pub(crate) fn opaque_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// When a VM's machine is to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum RunStrategy {
    /// Always running; started again however it ended.
    Always,
    /// Never running.
    Halted,
    /// Only the start and stop calls change anything.
    Manual,
    /// Started again after a failure, not after a clean power-off.
    RerunOnFailure,
    /// Started once, never again.
    Once,
    /// Waits for a machine that migrates in.
    WaitAsReceiver,
    /// A word that this version does not know; admission refuses it.
    Other(String),
}

impl RunStrategy {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Always => "Always",
            Self::Halted => "Halted",
            Self::Manual => "Manual",
            Self::RerunOnFailure => "RerunOnFailure",
            Self::Once => "Once",
            Self::WaitAsReceiver => "WaitAsReceiver",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for RunStrategy {
    fn from(word: String) -> Self {
        match word.as_str() {
            "Always" => Self::Always,
            "Halted" => Self::Halted,
            "Manual" => Self::Manual,
            "RerunOnFailure" => Self::RerunOnFailure,
            "Once" => Self::Once,
            "WaitAsReceiver" => Self::WaitAsReceiver,
            _ => Self::Other(word),
        }
    }
}

impl From<RunStrategy> for String {
    fn from(strategy: RunStrategy) -> Self {
        strategy.as_str().to_owned()
    }
}

impl fmt::Display for RunStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl VirtualMachineSpec {
    /// The strategy in force: `runStrategy`, or what `running` stands for; Halted when neither is set.
    #[must_use]
    pub fn effective_run_strategy(&self) -> RunStrategy {
        match (&self.run_strategy, self.running) {
            (Some(strategy), _) => strategy.clone(),
            (None, Some(true)) => RunStrategy::Always,
            (None, _) => RunStrategy::Halted,
        }
    }
}

/// The VirtualMachineInstance that a VM makes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualMachineInstanceTemplateSpec {
    /// Labels and annotations of the VirtualMachineInstance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crate::v1::vm::opaque_object")]
    pub metadata: Option<ObjectMeta>,
    /// The machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<VirtualMachineInstanceSpec>,
}

/// What is known of a VirtualMachine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineStatus {
    /// True while a VirtualMachineInstance exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<bool>,
    /// True while the VirtualMachineInstance is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The state in one word, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printable_status: Option<String>,
    /// Strategy when the VirtualMachineInstance was last made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_strategy: Option<RunStrategy>,
    /// Generation of the VM that the VirtualMachineInstance was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Generation of the VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_generation: Option<i64>,
    /// Conditions, most of them copied from the VirtualMachineInstance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Orders of the start, stop and restart calls that are not carried out yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_change_requests: Option<Vec<VirtualMachineStateChangeRequest>>,
    /// How starting has failed so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_failure: Option<VirtualMachineStartFailure>,
    /// Whether each volume can be part of a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_snapshot_statuses: Option<Vec<VolumeSnapshotStatus>>,
}

/// One order to start or to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VirtualMachineStateChangeRequest {
    /// `Start` or `Stop`.
    pub action: String,
    /// Options of the order, such as `paused`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<std::collections::BTreeMap<String, String>>,
    /// The VirtualMachineInstance that the order is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// How starting has failed so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineStartFailure {
    /// Failures in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consecutive_fail_count: Option<i64>,
    /// Uid of the last VirtualMachineInstance that failed.
    #[serde(
        rename = "lastFailedVMIUID",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub last_failed_vmi_uid: Option<String>,
    /// No new try before this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_timestamp: Option<Time>,
}

/// Whether a volume can be part of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeSnapshotStatus {
    /// Name of the volume.
    pub name: String,
    /// Whether it can.
    pub enabled: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
