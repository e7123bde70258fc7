//! VirtualMachineInstance: one machine that runs, from its pod's creation to its end.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Affinity, PodDNSConfig, Toleration, TopologySpreadConstraint},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::Time},
};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    condition::Condition,
    domain::{DomainSpec, Machine},
    probe::Probe,
    volume::{Network, Volume},
};

/// What the user asks of a VirtualMachineInstance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, CustomResource, KubeSchema)]
#[kube(
    group = "kubevirt.io",
    version = "v1",
    kind = "VirtualMachineInstance",
    namespaced,
    status = "VirtualMachineInstanceStatus",
    derive = "Default",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceSpec {
    /// CPU architecture of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub architecture: Option<String>,
    /// The machine's hardware.
    pub domain: DomainSpec,
    /// Where the disks' bytes come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volumes: Option<Vec<Volume>>,
    /// What the interfaces join.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub networks: Option<Vec<Network>>,
    /// Host name of the guest; the object's name when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// ServiceAccount of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Subdomain of the guest's full name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subdomain: Option<String>,
    /// Seconds that the guest gets to power off; 30 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<i64>,
    /// What an eviction of the pod means: None, LiveMigrate, LiveMigrateIfPossible or External.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eviction_strategy: Option<String>,
    /// `Paused` starts the machine paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_strategy: Option<String>,
    /// Labels that the node must carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<BTreeMap<String, String>>,
    /// Affinity of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// Tolerations of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerations: Option<Vec<Toleration>>,
    /// How pods spread over the nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// Scheduler of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// Priority class of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// DNS policy of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_policy: Option<String>,
    /// DNS settings of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_config: Option<PodDNSConfig>,
    /// When the guest counts as ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness_probe: Option<Probe>,
    /// When the guest counts as dead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness_probe: Option<Probe>,
}

/// Where a VirtualMachineInstance is in its life.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum VirtualMachineInstancePhase {
    /// Not looked at yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Accepted; no pod yet.
    Pending,
    /// The pod exists.
    Scheduling,
    /// The pod runs on a node.
    Scheduled,
    /// The machine runs.
    Running,
    /// The guest powered off.
    Succeeded,
    /// The machine ended otherwise.
    Failed,
    /// Not known.
    Unknown,
    /// Waits for a machine that migrates in.
    WaitingForSync,
}

impl VirtualMachineInstancePhase {
    /// Whether nothing runs any more and nothing will.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Pending => "Pending",
            Self::Scheduling => "Scheduling",
            Self::Scheduled => "Scheduled",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Unknown => "Unknown",
            Self::WaitingForSync => "WaitingForSync",
        }
    }
}

/// What is known of a VirtualMachineInstance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceStatus {
    /// Where it is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<VirtualMachineInstancePhase>,
    /// When each phase began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_transition_timestamps: Option<Vec<PhaseTransitionTimestamp>>,
    /// Node that runs the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_name: Option<String>,
    /// Why it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Vec<Condition>>,
    /// Launcher pods: uid to node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_pods: Option<BTreeMap<String, String>>,
    /// Interfaces as the machine has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interfaces: Option<Vec<VirtualMachineInstanceNetworkInterface>>,
    /// Volumes as the machine has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_status: Option<Vec<VolumeStatus>>,
    /// Guest memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryStatus>,
    /// CPU topology of the running machine.
    #[serde(
        rename = "currentCPUTopology",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub current_cpu_topology: Option<CpuTopology>,
    /// Machine type as the emulator names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// What the guest agent says of the operating system.
    #[serde(
        rename = "guestOSInfo",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub guest_os_info: Option<GuestOsInfo>,
    /// How local disks would migrate: `BlockMigration` or `LiveMigration`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_method: Option<String>,
    /// How migration connections are made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migration_transport: Option<String>,
    /// Quality of service class of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos_class: Option<String>,
    /// User id that the launcher runs as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_user: Option<u64>,
    /// Image of the launcher.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher_container_image_version: Option<String>,
    /// Name of the ControllerRevision that holds the VM's spec at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub virtual_machine_revision_name: Option<String>,
    /// Node that an eviction wants to empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evacuation_node_name: Option<String>,
}

/// When a phase began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhaseTransitionTimestamp {
    /// The phase.
    pub phase: VirtualMachineInstancePhase,
    /// Its first moment; whole seconds.
    pub phase_transition_timestamp: Time,
}

/// One interface of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtualMachineInstanceNetworkInterface {
    /// Name of the interface in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// First address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// All addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_addresses: Option<Vec<String>>,
    /// Hardware address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
    /// Name of the interface in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_name: Option<String>,
    /// Name of the interface in the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_interface_name: Option<String>,
    /// Who told: `domain`, `guest-agent`, `multus-status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info_source: Option<String>,
    /// `up` or `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_state: Option<String>,
    /// Queues of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_count: Option<i32>,
}

/// One volume of the machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VolumeStatus {
    /// Name of the volume.
    pub name: String,
    /// Device in the guest, such as `vda`.
    pub target: String,
}

/// Guest memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryStatus {
    /// At start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_at_boot: Option<Quantity>,
    /// Now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_current: Option<Quantity>,
    /// Asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_requested: Option<Quantity>,
    /// The launcher's own share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_overhead: Option<Quantity>,
}

/// CPU topology.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuTopology {
    /// Cores in each socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u32>,
    /// Sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sockets: Option<u32>,
    /// Threads in each core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
}

/// The guest's operating system, by its agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestOsInfo {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Kernel release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_release: Option<String>,
    /// Version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Name and version for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pretty_name: Option<String>,
    /// Id of the distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}
