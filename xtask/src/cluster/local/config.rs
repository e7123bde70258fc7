//! Configuration files of a node's programs, as pure text.

use serde_json::{Value, json};

use crate::cluster::plan::Node;

/// What was found out about the host, since each of these settings is wrong on some other host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostFacts {
    /// The unified hierarchy is at /sys/fs/cgroup.
    pub cgroup_v2: bool,
    /// The process may raise resource limits and lower OOM scores.
    pub sys_resource: bool,
}

/// Image of the container that holds a pod's namespaces.
pub const PAUSE_IMAGE: &str = "registry.virtmark.dev/pause:v1";

/// kubelet's configuration. JSON is YAML.
pub fn kubelet(node: &Node<'_>, facts: HostFacts) -> Value {
    let pki = node.plan.dir.join("pki");
    let name = node.name();
    let mut config = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", node.cgroup()),
        "clusterDomain": "cluster.local",
        // Told even where no name server runs: without it the kubelet warns about every pod.
        "clusterDNS": [node.plan.dns_service()],
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": true},
            "x509": {"clientCAFile": pki.join("ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": pki.join(format!("{name}.crt")),
        "tlsPrivateKeyFile": pki.join(format!("{name}.key")),
        "readOnlyPort": 0,
        // New devices reach the scheduler with the next report; ten seconds are long for a test.
        "nodeStatusUpdateFrequency": "2s",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "failSwapOn": false,
        "resolvConf": "",
        // A full disk of the developer's machine is no reason to evict pods.
        "evictionHard": {
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
            "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "maxPods": 250,
    });
    if !facts.cgroup_v2 {
        config["failCgroupV1"] = json!(false);
    }
    if !facts.sys_resource {
        config["featureGates"] = json!({"KubeletInUserNamespace": true});
    }
    config
}

/// containerd's configuration.
pub fn containerd(node: &Node<'_>, facts: HostFacts) -> String {
    let bin = node.plan.bin.display();
    format!(
        r#"version = 3
root = "{root}"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{PAUSE_IMAGE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = {restrict}
  device_ownership_from_security_context = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{bin}"]
    conf_dir = "{cni}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      BinaryName = "{bin}/runc"
      SystemdCgroup = false
"#,
        root = node.file("containerd").display(),
        restrict = !facts.sys_resource,
        cni = node.file("cni").display(),
    )
}

/// The pod network: a bridge in the node, addresses from the node's range.
pub fn cni(node: &Node<'_>) -> Value {
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": true,
                // Pods meet under their own addresses, on every node and at the API server.
                "ipMasq": false,
                "hairpinMode": true,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam",
                    "ranges": [[{"subnet": node.pods()}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    })
}

/// A kubeconfig with embedded certificates, PEM in base64.
pub fn kubeconfig(name: &str, server: &str, ca: &str, cert: &str, key: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{
            "name": name,
            "cluster": {"server": server, "certificate-authority-data": ca},
        }],
        "users": [{
            "name": name,
            "user": {"client-certificate-data": cert, "client-key-data": key},
        }],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rstest::rstest;

    use super::*;
    use crate::cluster::plan::Plan;

    fn plan() -> Plan {
        Plan {
            name: "x".parse().unwrap(),
            number: 7,
            nodes: 1,
            dir: PathBuf::from("/state/x"),
            node_cpus: 8,
            bin: PathBuf::from("/bin"),
        }
    }

    #[rstest]
    #[case::bare_host(true, true, false, false)]
    #[case::old_cgroups(false, true, true, false)]
    #[case::restricted_root(true, false, false, true)]
    fn work_arounds_only_where_they_are_needed(
        #[case] cgroup_v2: bool,
        #[case] sys_resource: bool,
        #[case] tolerates_v1: bool,
        #[case] in_user_namespace: bool,
    ) {
        let plan = plan();
        let node = plan.node_plans().next().unwrap();
        let facts = HostFacts {
            cgroup_v2,
            sys_resource,
        };
        let config = kubelet(&node, facts);
        assert_eq!(config.get("failCgroupV1").is_some(), tolerates_v1);
        assert_eq!(config.get("featureGates").is_some(), in_user_namespace);
        let toml = containerd(&node, facts);
        assert_eq!(
            toml.contains("restrict_oom_score_adj = true"),
            in_user_namespace
        );
    }
}
