//! The kinds that scenarios may name, with the API path each one is served under.
//!
//! A closed table: a misspelt kind is a lint error, not a watch that never sees anything.

/// How a kind is addressed on the API server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindInfo {
    /// Kind as in manifests.
    pub kind: &'static str,
    /// Group and version, such as `kubevirt.io/v1`.
    pub api_version: &'static str,
    /// Plural resource name as in URLs.
    pub plural: &'static str,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

static KINDS: [KindInfo; 16] = [
    kind("VirtualMachine", "kubevirt.io/v1", "virtualmachines", true),
    kind(
        "VirtualMachineInstance",
        "kubevirt.io/v1",
        "virtualmachineinstances",
        true,
    ),
    kind(
        "VirtualMachineInstanceMigration",
        "kubevirt.io/v1",
        "virtualmachineinstancemigrations",
        true,
    ),
    kind(
        "VirtualMachineInstanceReplicaSet",
        "kubevirt.io/v1",
        "virtualmachineinstancereplicasets",
        true,
    ),
    kind("KubeVirt", "kubevirt.io/v1", "kubevirts", true),
    kind("Pod", "v1", "pods", true),
    kind("Node", "v1", "nodes", false),
    kind("Event", "v1", "events", true),
    kind("Secret", "v1", "secrets", true),
    kind("ConfigMap", "v1", "configmaps", true),
    kind("Service", "v1", "services", true),
    kind("ServiceAccount", "v1", "serviceaccounts", true),
    kind(
        "PersistentVolumeClaim",
        "v1",
        "persistentvolumeclaims",
        true,
    ),
    kind("ControllerRevision", "apps/v1", "controllerrevisions", true),
    kind("Deployment", "apps/v1", "deployments", true),
    kind("DaemonSet", "apps/v1", "daemonsets", true),
];

/// Looks a kind up by its name.
pub fn find(name: &str) -> Option<&'static KindInfo> {
    KINDS.iter().find(|known| known.kind == name)
}

/// Every kind.
pub fn all() -> impl Iterator<Item = &'static KindInfo> {
    KINDS.iter()
}

impl KindInfo {
    /// The collection's path: `/apis/kubevirt.io/v1/namespaces/ns/virtualmachines`.
    pub fn collection_path(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let api_version = self.api_version;
        let plural = self.plural;
        if self.namespaced {
            format!("{root}/{api_version}/namespaces/{namespace}/{plural}")
        } else {
            format!("{root}/{api_version}/{plural}")
        }
    }
}

const fn kind(
    kind: &'static str,
    api_version: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> KindInfo {
    KindInfo {
        kind,
        api_version,
        plural,
        namespaced,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("VirtualMachine", "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines")]
    #[case("Pod", "/api/v1/namespaces/ns/pods")]
    #[case("Node", "/api/v1/nodes")]
    fn paths_are_those_of_the_api_server(#[case] name: &str, #[case] path: &str) {
        assert_eq!(
            find(name).map(|kind| kind.collection_path("ns")).as_deref(),
            Some(path)
        );
    }

    #[test]
    fn a_misspelt_kind_is_unknown() {
        assert_eq!(find("VirtualMachnie"), None);
    }
}
