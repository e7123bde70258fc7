//! Launcher pods against those that the original made of the same VMIs, and as whole snapshots.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::kubevirt::Configuration;

/// VMIs as the original stored them and what it put into their pods; recorded from version 1.9.0
/// with useEmulation.
const RECORDED: &str = include_str!("launcher/recorded.json");

fn observed(vmi: &Value, configuration: Configuration) -> Observed {
    Observed {
        vmi: serde_json::from_value(json!({
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance",
            "metadata": {
                "name": vmi["name"], "namespace": "default", "labels": vmi["labels"],
                "annotations": {
                    "kubevirt.io/vm-generation": "2", "my/ann": "1",
                    "kubevirt.io/latest-observed-api-version": "v1"
                },
                "uid": "e10bb58e-9658-4be8-967c-3b9a3589961d"
            },
            "spec": vmi["spec"]
        }))
        .unwrap(),
        pods: Vec::new(),
        owner_gone: false,
        configuration,
        launcher_image: "registry.virtmark.dev/virt-launcher:v0.1.0".to_owned(),
        silent_on_readiness: false,
        now: Time("2026-12-01T00:00:00Z".parse().unwrap()),
    }
}

fn emulation() -> Configuration {
    Configuration {
        use_emulation: true,
        ..Configuration::default()
    }
}

fn recorded(case: &str) -> Value {
    let all: Value = serde_json::from_str(RECORDED).unwrap();
    all[case].clone()
}

fn render(case: &str, configuration: Configuration) -> Value {
    let vmi = &recorded(case)["vmi"];
    serde_json::to_value(pod(&observed(vmi, configuration)).unwrap()).unwrap()
}

#[rstest]
fn pods_match_the_recording(
    #[values(
        "base-128Mi",
        "mem-1Gi",
        "guest-1Gi-only",
        "guest-2Gi-req-1Gi",
        "mem-4Gi-8cpu",
        "limits-mem-only",
        "req-lim-cpu-mem",
        "guaranteed",
        "dedicated-cpu",
        "dedicated-isolated",
        "hugepages-2Mi",
        "overcommitGuestOverhead",
        "no-graphics-serial",
        "no-network",
        "cpu-model",
        "cpu-passthrough",
        "scheduling",
        "grace-0",
        "grace-unset",
        "probes-exec",
        "probes-http",
        "two-containerdisks-pullsecret",
        "dns-hostname",
        "ports",
        "iothreads"
    )]
    case: &str,
) {
    let want = recorded(case)["pod"].clone();
    let got = render(case, emulation());
    let (spec, compute) = (&got["spec"], &got["spec"]["containers"][0]);
    assert_eq!(
        compute["resources"]["requests"], want["requests"],
        "requests"
    );
    assert_eq!(compute["resources"]["limits"], want["limits"], "limits");
    let overhead = &got["metadata"]["annotations"]["kubevirt.io/memory-overhead-bytes"];
    assert_eq!(*overhead, want["overhead"], "overhead");
    for field in [
        "nodeSelector",
        "affinity",
        "terminationGracePeriodSeconds",
        "hostname",
        "subdomain",
        "imagePullSecrets",
        "tolerations",
        "dnsConfig",
    ] {
        assert_eq!(spec[field], want[field], "{field}");
    }
    assert_eq!(compute["ports"], want["ports"], "ports");
    for (name, value) in want["labels"].as_object().unwrap() {
        assert_eq!(got["metadata"]["labels"][name], *value, "label {name}");
    }
    let mounts = compute["volumeMounts"].as_array().unwrap();
    for (name, path) in want["imageMounts"].as_object().unwrap() {
        assert!(
            mounts.contains(&json!({"name": name, "mountPath": path, "readOnly": true})),
            "mount of {name}"
        );
    }
}

#[test]
fn probes_over_the_network_start_later() {
    let got = render("probes-http", emulation());
    let compute = &got["spec"]["containers"][0];
    for (field, want) in ["readinessProbe", "livenessProbe"]
        .iter()
        .zip(recorded("probes-http")["pod"]["probes"].as_array().unwrap())
    {
        assert_eq!(
            compute[field]["initialDelaySeconds"], want["initialDelaySeconds"],
            "{field}"
        );
    }
}

#[test]
fn whole_pod_with_hardware() {
    let vmi = json!({
        "name": "probe", "labels": {"kubevirt.io/domain": "probe"},
        "spec": {
            "architecture": "amd64", "terminationGracePeriodSeconds": 5,
            "domain": {
                "devices": {"disks": [{"name": "cd", "disk": {"bus": "virtio"}}]},
                "machine": {"type": "q35"},
                "memory": {"guest": "128Mi"},
                "firmware": {"kernelBoot": {"container": {
                    "image": "registry.virtmark.dev/probe-kernel:v1", "kernelPath": "/boot/probe",
                    "imagePullPolicy": "IfNotPresent"
                }}},
                "resources": {"requests": {"memory": "128Mi"}}
            },
            "volumes": [
                {"name": "scratch", "emptyDisk": {"capacity": "1Mi"}},
                {"name": "cd", "containerDisk": {
                    "image": "registry.virtmark.dev/probe-disk:v1", "imagePullPolicy": "IfNotPresent"
                }}
            ]
        }
    });
    let pod = pod(&observed(&vmi, Configuration::default())).unwrap();
    insta::assert_yaml_snapshot!(pod);
}

#[rstest]
#[case::hardware(Configuration::default(), Some("1"), false)]
#[case::emulation(emulation(), None, true)]
fn emulation_needs_no_device(
    #[case] configuration: Configuration,
    #[case] kvm: Option<&str>,
    #[case] flag: bool,
) {
    let got = render("base-128Mi", configuration);
    let compute = &got["spec"]["containers"][0];
    assert_eq!(
        compute["resources"]["limits"]["devices.kubevirt.io/kvm"].as_str(),
        kvm
    );
    let command = compute["command"].as_array().unwrap();
    assert_eq!(command.contains(&json!("--allow-emulation")), flag);
}

#[test]
fn memory_overcommit_gives_out_more_than_there_is() {
    let configuration = Configuration {
        memory_overcommit: 200,
        ..emulation()
    };
    let got = render("guest-1Gi-only", configuration);
    let memory = &got["spec"]["containers"][0]["resources"]["requests"]["memory"];
    // 1Gi halved, and 268Mi of overhead.
    assert_eq!(memory, "780Mi");
}

#[test]
fn a_uid_has_one_pod_name_and_long_names_fit() {
    let one = pod_name("virt-launcher-a-", "uid-1");
    assert_eq!(one, pod_name("virt-launcher-a-", "uid-1"));
    assert_ne!(one, pod_name("virt-launcher-a-", "uid-2"));
    assert_eq!(one.len(), "virt-launcher-a-".len() + 5);
    assert_eq!(pod_name(&"x".repeat(200), "uid-1").len(), 63);
    assert_eq!(label_value(&"x".repeat(200)).len(), 63);
}
