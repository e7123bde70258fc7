//! The cluster's name server, only where it is asked for: CoreDNS takes minutes to build and nothing
//! of ours needs it. It runs on the host, on the bridge, behind an ordinary Service without selector.

use std::fs;

use serde_json::json;

use super::spawn;
use crate::{cluster::plan::Plan, run::Cmd};

/// Starts the name server and gives it its Service.
pub fn start(plan: &Plan) -> anyhow::Result<()> {
    let config = plan.dir.join("Corefile");
    fs::write(&config, corefile(plan))?;
    let server = Cmd::new(plan.bin.join("coredns")).arg("-conf").arg(&config);
    spawn::service(plan, "coredns", &server)?;
    let port =
        |protocol: &str| json!({"name": protocol.to_lowercase(), "port": 53, "protocol": protocol});
    let ports = json!([port("UDP"), port("TCP")]);
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "kube-dns", "namespace": "kube-system"},
            "spec": {"clusterIP": plan.dns_service(), "ports": ports},
        },
        {
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {
                "name": "kube-dns-host", "namespace": "kube-system",
                "labels": {"kubernetes.io/service-name": "kube-dns"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [plan.gateway()], "conditions": {"ready": true}}],
            "ports": ports,
        },
    ]});
    super::kubectl(plan)
        .args(["apply", "--request-timeout=30s", "-f", "-"])
        .input(objects.to_string())
        .output()
        .map(drop)
}

fn corefile(plan: &Plan) -> String {
    format!(
        ".:53 {{\n  bind {}\n  errors\n  kubernetes cluster.local in-addr.arpa {{\n    kubeconfig {} virtmark-{}\n    pods insecure\n  }}\n  cache 5\n}}\n",
        plan.gateway(),
        plan.kubeconfig().display(),
        plan.name
    )
}
