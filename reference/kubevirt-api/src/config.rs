//! The settings of the system that defaulting and admission look at.

use crate::v1::KubeVirtSpec;

/// Settings in force, with the original's defaults where the KubeVirt resource says nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// Architecture of VMs that name none.
    pub architecture: String,
    /// Machine type of VMs that name none.
    pub machine_type: String,
    /// Patterns of machine types that may be asked for; `*` stands for anything.
    pub emulated_machines: Vec<String>,
    /// CPU model of VMIs that name none.
    pub cpu_model: Option<String>,
    /// Eviction strategy of VMIs that name none.
    pub eviction_strategy: String,
    /// Binding of the interface that VMIs without networks get: `bridge` or `masquerade`.
    pub default_interface: String,
    /// Whether the bridge binding is allowed on the pod network.
    pub bridge_on_pod_network: bool,
    /// Most sockets are this times the sockets at the start.
    pub hotplug_ratio: u32,
    /// Features that are switched on.
    pub feature_gates: Vec<String>,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        Self {
            architecture: "amd64".to_owned(),
            machine_type: "q35".to_owned(),
            emulated_machines: vec!["q35*".to_owned(), "pc-q35*".to_owned()],
            cpu_model: None,
            eviction_strategy: "None".to_owned(),
            default_interface: "bridge".to_owned(),
            bridge_on_pod_network: true,
            hotplug_ratio: 4,
            feature_gates: Vec::new(),
        }
    }
}

impl ClusterConfig {
    /// The settings that a KubeVirt resource asks for.
    #[must_use]
    pub fn of(spec: &KubeVirtSpec) -> Self {
        let mut config = Self::default();
        let Some(wanted) = &spec.configuration else {
            return config;
        };
        let set = |place: &mut String, word: &Option<String>| {
            if let Some(word) = word.as_ref().filter(|word| !word.is_empty()) {
                place.clone_from(word);
            }
        };
        set(&mut config.machine_type, &wanted.machine_type);
        set(&mut config.eviction_strategy, &wanted.eviction_strategy);
        config.cpu_model.clone_from(&wanted.cpu_model);
        if let Some(patterns) = &wanted.emulated_machines {
            config.emulated_machines.clone_from(patterns);
        }
        if let Some(network) = &wanted.network {
            set(
                &mut config.default_interface,
                &network.default_network_interface,
            );
            config.bridge_on_pod_network = network
                .permit_bridge_interface_on_pod_network
                .unwrap_or(true);
        }
        if let Some(gates) = wanted
            .developer_configuration
            .as_ref()
            .and_then(|d| d.feature_gates.as_ref())
        {
            config.feature_gates.clone_from(gates);
        }
        config
    }

    /// Whether a feature is switched on.
    #[must_use]
    pub fn has_gate(&self, name: &str) -> bool {
        self.feature_gates.iter().any(|gate| gate == name)
    }
}
