//! Deployments of virt-api and virt-controller, and the DaemonSet of virt-handler.

use serde_json::{Value, json};
use virt_kit::fault;

use crate::install::Install;

/// Name of the Deployment that serves webhooks and subresources.
pub const API: &str = "virt-api";
/// Name of the Deployment that makes VMIs and pods.
pub const CONTROLLER: &str = "virt-controller";
/// Name of the DaemonSet that drives the machines of a node.
pub const HANDLER: &str = "virt-handler";

const PRIORITY_CLASS: &str = "kubevirt-cluster-critical";

struct Component<'a> {
    name: &'static str,
    account: &'static str,
    args: Vec<String>,
    ports: Value,
    /// Requested CPU and memory; the handler asks for no CPU, so that a VM may ask for all of a small node.
    requests: Value,
    server_certs: &'static str,
    client_certs: Option<&'static str>,
    install: &'a Install,
}

pub(super) fn api(install: &Install) -> Value {
    let component = Component {
        name: API,
        account: "kubevirt-apiserver",
        args: vec!["--namespace".to_owned(), install.namespace.clone()],
        ports: json!([{"containerPort": 8443, "name": "virt-api", "protocol": "TCP"}]),
        requests: json!({"cpu": "5m", "memory": "40Mi"}),
        server_certs: "kubevirt-virt-api-certs",
        client_certs: Some("kubevirt-virt-handler-certs"),
        install,
    };
    component.deployment()
}

pub(super) fn controller(install: &Install) -> Value {
    let component = Component {
        name: CONTROLLER,
        account: "kubevirt-controller",
        args: vec![
            "--launcher-image".to_owned(),
            install.images.of("virt-launcher"),
            "--namespace".to_owned(),
            install.namespace.clone(),
        ],
        ports: json!([{"containerPort": 8443, "name": "metrics", "protocol": "TCP"}]),
        requests: json!({"cpu": "10m", "memory": "40Mi"}),
        server_certs: "kubevirt-controller-certs",
        client_certs: None,
        install,
    };
    component.deployment()
}

pub(super) fn handler(install: &Install) -> Value {
    let component = Component {
        name: HANDLER,
        account: "kubevirt-handler",
        args: Vec::new(),
        ports: json!([
            {"containerPort": 8443, "name": "metrics", "protocol": "TCP"},
            {"containerPort": 8186, "name": "console", "protocol": "TCP"},
        ]),
        requests: json!({"memory": "40Mi"}),
        server_certs: "kubevirt-virt-handler-server-certs",
        client_certs: None,
        install,
    };
    let mut object = component.object("DaemonSet");
    object["spec"]["updateStrategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
    let pod = &mut object["spec"]["template"]["spec"];
    pod["hostPID"] = json!(true);
    pod["securityContext"] = json!({});
    pod["terminationGracePeriodSeconds"] = json!(15);
    push(
        &mut pod["volumes"],
        json!({
            "name": "kubelet",
            "hostPath": {"path": "/var/lib/kubelet", "type": "Directory"},
        }),
    );
    let container = &mut pod["containers"][0];
    container["securityContext"] = json!({"privileged": true, "runAsUser": 0});
    push(
        &mut container["volumeMounts"],
        json!({
            "name": "kubelet",
            "mountPath": "/var/lib/kubelet",
            "mountPropagation": "HostToContainer",
        }),
    );
    for (name, path) in [("NODE_NAME", "spec.nodeName"), ("POD_IP", "status.podIP")] {
        push(&mut container["env"], from_field(name, path));
    }
    object
}

impl Component<'_> {
    fn deployment(&self) -> Value {
        let mut object = self.object("Deployment");
        object["spec"]["replicas"] = json!(self.install.replicas);
        // Replicas side by side on different nodes where there are several.
        object["spec"]["template"]["spec"]["affinity"] = json!({
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "kubernetes.io/hostname",
                        "labelSelector": {"matchLabels": {"kubevirt.io": self.name}},
                    },
                }],
            },
        });
        object
    }

    fn object(&self, kind: &str) -> Value {
        json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {
                "name": self.name,
                "namespace": self.install.namespace,
                "labels": {"kubevirt.io": self.name},
            },
            "spec": {
                "selector": {"matchLabels": {"kubevirt.io": self.name}},
                "template": {
                    "metadata": {"labels": {"kubevirt.io": self.name}},
                    "spec": self.pod(),
                },
            },
        })
    }

    fn pod(&self) -> Value {
        json!({
            "serviceAccountName": self.account,
            "priorityClassName": PRIORITY_CLASS,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}],
            "terminationGracePeriodSeconds": 5,
            "securityContext": {
                "runAsNonRoot": true,
                "runAsUser": 1001,
                "fsGroup": 1001,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [self.container()],
            "volumes": self.volumes(),
        })
    }

    fn container(&self) -> Value {
        let probe = |path: &str| {
            json!({
                "httpGet": {"path": path, "port": 8443, "scheme": "HTTPS"},
                "periodSeconds": if path == "/readyz" { 1 } else { 10 },
                "timeoutSeconds": 5,
            })
        };
        let mut mounts = vec![
            json!({"name": "ca", "mountPath": "/etc/virt/ca", "readOnly": true}),
            json!({"name": "server", "mountPath": "/etc/virt/server", "readOnly": true}),
        ];
        if self.client_certs.is_some() {
            mounts
                .push(json!({"name": "client", "mountPath": "/etc/virt/client", "readOnly": true}));
        }
        let mut env = vec![
            from_field("POD_NAME", "metadata.name"),
            from_field("POD_NAMESPACE", "metadata.namespace"),
        ];
        if let Some(fault) = self.install.fault {
            env.push(json!({"name": fault::VARIABLE, "value": fault.name()}));
        }
        json!({
            "name": self.name,
            "image": self.install.images.of(self.name),
            "imagePullPolicy": self.install.pull_policy,
            "args": self.args,
            "env": env,
            "ports": self.ports,
            "resources": {"requests": self.requests},
            "livenessProbe": probe("/healthz"),
            "readinessProbe": probe("/readyz"),
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
            "volumeMounts": mounts,
        })
    }

    fn volumes(&self) -> Vec<Value> {
        let mut volumes = vec![
            json!({"name": "ca", "configMap": {"name": "kubevirt-ca"}}),
            json!({"name": "server", "secret": {"secretName": self.server_certs}}),
        ];
        if let Some(secret) = self.client_certs {
            volumes.push(json!({"name": "client", "secret": {"secretName": secret}}));
        }
        volumes
    }
}

fn from_field(name: &str, path: &str) -> Value {
    json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn push(list: &mut Value, item: Value) {
    if let Some(list) = list.as_array_mut() {
        list.push(item);
    }
}
