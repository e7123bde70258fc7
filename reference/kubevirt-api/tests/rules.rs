//! Rules that the recording does not reach: each refuses a machine with one fault, and accepts the
//! same machine without it.

use kubevirt_api::{
    config::ClusterConfig,
    review::{self, Operation, Review},
};
use rstest::rstest;
use serde_json::{Value, json};

fn machine() -> Value {
    json!({
        "domain": {
            "devices": {
                "disks": [{"name": "cd", "disk": {"bus": "virtio"}}],
                "interfaces": [{"name": "default", "masquerade": {}}]
            },
            "resources": {"requests": {"memory": "128Mi"}}
        },
        "networks": [{"name": "default", "pod": {}}],
        "volumes": [{"name": "cd", "containerDisk": {"image": "x"}}]
    })
}

/// RFC 7396: objects are merged, everything else is replaced.
fn merge(target: &mut Value, patch: Value) {
    match patch {
        Value::Object(patch) => {
            if !target.is_object() {
                *target = json!({});
            }
            for (key, value) in patch {
                merge(&mut target[key], value);
            }
        }
        other => *target = other,
    }
}

/// The fields of the causes that a VMI is refused for.
fn faults(patch: Value, config: &ClusterConfig) -> Vec<String> {
    let mut spec = machine();
    merge(&mut spec, patch);
    let object = json!({"metadata": {"name": "a"}, "spec": spec});
    match admit(&object, config) {
        Ok(()) => Vec::new(),
        Err(denial) => denial
            .causes
            .into_iter()
            .map(|cause| cause.field.unwrap_or(cause.message))
            .collect(),
    }
}

fn admit(object: &Value, config: &ClusterConfig) -> Result<(), review::Denial> {
    let review = |object| Review {
        operation: Operation::Create,
        object,
        old: &Value::Null,
        by_system: false,
    };
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    let object = review::mutate_vmi(&review(object), config, &mut || "id".to_owned(), &now)?;
    review::validate_new_vmi(&review(&object), config).map(drop)
}

fn disk(patch: Value) -> Value {
    let mut disk = json!({"name": "cd", "disk": {"bus": "virtio"}});
    merge(&mut disk, patch);
    json!({"domain": {"devices": {"disks": [disk]}}})
}

fn cdrom(bus: &str) -> Value {
    json!({"domain": {"devices": {"disks": [{"name": "cd", "cdrom": {"bus": bus}}]}}})
}

fn volume(source: Value) -> Value {
    let mut volume = json!({"name": "cd"});
    merge(&mut volume, source);
    json!({"volumes": [volume]})
}

fn interface(patch: Value) -> Value {
    let mut interface = json!({"name": "default", "masquerade": {}});
    merge(&mut interface, patch);
    json!({"domain": {"devices": {"interfaces": [interface]}}})
}

fn networks(networks: Value) -> Value {
    let names = networks.as_array().cloned().unwrap_or_default();
    let interfaces: Vec<Value> = names
        .iter()
        .map(|network| json!({"name": network["name"], "bridge": {}}))
        .collect();
    json!({"networks": networks, "domain": {"devices": {"interfaces": interfaces}}})
}

fn kernel(container: Value) -> Value {
    json!({"domain": {"firmware": {"kernelBoot": {"container": container}}}})
}

fn cpu(cpu: Value, resources: Value) -> Value {
    json!({"domain": {"cpu": cpu, "resources": resources}})
}

#[rstest]
#[case::r3("spec.serviceAccountName", json!({"serviceAccountName": "No"}), json!({"serviceAccountName": "yes"}))]
#[case::r5("spec.domain.resources.requests.memory", json!({"domain": {"resources": {"requests": {"memory": "-1Mi"}}, "memory": {"guest": "64Mi"}}}), json!({}))]
#[case::r7("spec.domain.resources.limits.memory", json!({"domain": {"resources": {"limits": {"memory": "-1"}}}}), json!({"domain": {"resources": {"limits": {"memory": "128Mi"}}}}))]
#[case::r12("spec.domain.resources.requests.memory", json!({"domain": {"memory": {"hugepages": {"pageSize": "2Mi"}}, "resources": {"requests": {"memory": "127Mi"}}}}), json!({"domain": {"memory": {"hugepages": {"pageSize": "2Mi"}}}}))]
#[case::r15("spec.domain.resources.requests.cpu", json!({"domain": {"resources": {"requests": {"cpu": "-1"}}}}), json!({"domain": {"resources": {"requests": {"cpu": "1"}}}}))]
#[case::r20("spec.domain.resources.limits.cpu", cpu(json!({"dedicatedCpuPlacement": true}), json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2500m"}})), cpu(json!({"dedicatedCpuPlacement": true}), json!({"requests": {"cpu": "2"}, "limits": {"cpu": "2"}})))]
#[case::r21("spec.domain.resources.requests.memory", cpu(json!({"dedicatedCpuPlacement": true}), json!({"limits": {"memory": "256Mi"}})), cpu(json!({"dedicatedCpuPlacement": true}), json!({"limits": {"memory": "128Mi"}})))]
#[case::r26("spec.domain.cpu.dedicatedCpuPlacement", cpu(json!({"dedicatedCpuPlacement": true, "threads": 3}), json!({})), cpu(json!({"dedicatedCpuPlacement": true, "threads": 2}), json!({})))]
#[case::r30("spec.domain.cpu.sockets", cpu(json!({"sockets": 3, "maxSockets": 2}), json!({})), cpu(json!({"sockets": 2, "maxSockets": 2}), json!({})))]
#[case::r45("spec.domain.firmware.kernelBoot.container.kernelPath", kernel(json!({"image": "x", "kernelPath": "boot/probe"})), kernel(json!({"image": "x", "kernelPath": "/boot/probe"})))]
#[case::r45_root("spec.domain.firmware.kernelBoot.container.initrdPath", kernel(json!({"image": "x", "kernelPath": "/k", "initrdPath": "/"})), kernel(json!({"image": "x", "kernelPath": "/k"})))]
#[case::r46("spec.readinessProbe", json!({"readinessProbe": {"tcpSocket": {"port": 1}, "exec": {"command": ["x"]}}}), json!({"readinessProbe": {"tcpSocket": {"port": 1}}}))]
#[case::r50("spec.dnsConfig", json!({"dnsPolicy": "None"}), json!({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}}))]
#[case::r51("spec.dnsConfig.nameservers", json!({"dnsPolicy": "None", "dnsConfig": {}}), json!({"dnsConfig": {}}))]
#[case::r52("spec.dnsConfig.nameservers", json!({"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}}), json!({"dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3"]}}))]
#[case::r53("spec.dnsConfig.nameservers[0]", json!({"dnsConfig": {"nameservers": ["ns.example"]}}), json!({"dnsConfig": {"nameservers": ["fd00::1"]}}))]
#[case::r56("spec.dnsConfig.searches[0]", json!({"dnsConfig": {"searches": ["_x"]}}), json!({"dnsConfig": {"searches": ["a.b."]}}))]
#[case::r57("spec.dnsConfig.options[0]", json!({"dnsConfig": {"options": [{"value": "1"}]}}), json!({"dnsConfig": {"options": [{"name": "ndots"}]}}))]
#[case::r62("spec.domain.ioThreadsPolicy", json!({"domain": {"ioThreadsPolicy": "many"}}), json!({"domain": {"ioThreadsPolicy": "auto"}}))]
#[case::r103("spec.domain.devices.disks[0].name", json!({"volumes": [{"name": "C", "containerDisk": {"image": "x"}}], "domain": {"devices": {"disks": [{"name": "C", "disk": {}}]}}}), json!({}))]
#[case::r106("spec.domain.devices.disks.domain.devices.disks.disk[0].pciAddress", disk(json!({"disk": {"pciAddress": "1:2"}})), disk(json!({"disk": {"pciAddress": "0000:81:01.0"}})))]
#[case::r108(
    "spec.domain.devices.disks[0].cdrom.bus",
    cdrom("virtio"),
    cdrom("sata")
)]
#[case::r109("spec.domain.devices.disks[0].disk.bus", disk(json!({"disk": {"bus": "sata", "readonly": true}})), disk(json!({"disk": {"bus": "virtio", "readonly": true}})))]
#[case::r112("spec.domain.devices.disks[0].serial", disk(json!({"serial": "a b"})), disk(json!({"serial": "A.b_+-1"})))]
#[case::r115("spec.domain.devices.disks.domain.devices.disks[0].io", disk(json!({"io": "default"})), disk(json!({"io": "native"})))]
#[case::r119("spec.volumes[0].containerDisk.path", volume(json!({"containerDisk": {"image": "x", "path": "/a/../b"}})), volume(json!({"containerDisk": {"image": "x", "path": "/a/b"}})))]
#[case::r121("spec.volumes[0]", volume(json!({"containerDisk": {"image": "x"}, "emptyDisk": {"capacity": "1Mi"}})), volume(json!({"emptyDisk": {"capacity": "1Mi"}})))]
#[case::r122("spec.volumes[0].name", volume(json!({"dataVolume": {"name": ""}})), volume(json!({"dataVolume": {"name": "d"}})))]
#[case::r125("spec.volumes[0].cloudInitNoCloud", volume(json!({"cloudInitNoCloud": {"userData": "x".repeat(2049)}})), volume(json!({"cloudInitNoCloud": {"userData": "x".repeat(2048)}})))]
#[case::r126("spec.volumes[0].cloudInitConfigDrive.networkDataBase64", volume(json!({"cloudInitConfigDrive": {"networkDataBase64": "!"}})), volume(json!({"cloudInitConfigDrive": {"networkDataBase64": "eA=="}})))]
#[case::r135("spec.volumes[0].configMap.name", volume(json!({"configMap": {"optional": true}})), volume(json!({"configMap": {"name": "c"}})))]
#[case::r136("spec.volumes[0].secret.secretName", volume(json!({"secret": {"optional": true}})), volume(json!({"secret": {"secretName": "s"}})))]
#[case::r137("spec.volumes[0].serviceAccount.serviceAccountName", volume(json!({"serviceAccount": {}})), volume(json!({"serviceAccount": {"serviceAccountName": "s"}})))]
#[case::r4("spec.serviceAccountName", json!({"serviceAccountName": "a", "volumes": [{"name": "cd", "serviceAccount": {"serviceAccountName": "b"}}]}), json!({"serviceAccountName": "b", "volumes": [{"name": "cd", "serviceAccount": {"serviceAccountName": "b"}}]}))]
#[case::r160("spec.domain.devices.interfaces[0].pciAddress", interface(json!({"pciAddress": "x"})), interface(json!({"pciAddress": "0000:01:02.3"})))]
#[case::r166("spec.domain.devices.interfaces[0].state", interface(json!({"state": "sideways"})), interface(json!({"state": "down"})))]
#[case::r168("spec.domain.devices.interfaces[0].ports[0].port", interface(json!({"ports": [{"port": 65536}]})), interface(json!({"ports": [{"port": 65535}]})))]
#[case::r174("spec.domain.devices.interfaces", networks(json!([{"name": "a", "pod": {}}, {"name": "b", "pod": {}}])), networks(json!([{"name": "a", "pod": {}}, {"name": "b", "multus": {"networkName": "n"}}])))]
#[case::r175("spec.networks", networks(json!([{"name": "a", "pod": {}}, {"name": "b", "multus": {"networkName": "n", "default": true}}])), networks(json!([{"name": "b", "multus": {"networkName": "n", "default": true}}])))]
fn one_fault_is_refused_and_its_neighbour_is_not(
    #[case] field: &str,
    #[case] faulty: Value,
    #[case] sound: Value,
) {
    let config = ClusterConfig::default();
    let found = faults(faulty, &config);
    assert!(found.iter().any(|f| f == field), "{field} not in {found:?}");
    assert_eq!(
        faults(sound, &config),
        Vec::<String>::new(),
        "the neighbour"
    );
}

#[test]
fn what_the_administrator_switches_on_or_off_counts() {
    let host_disk = volume(json!({"hostDisk": {"path": "/d", "type": "Disk"}}));
    let open = ClusterConfig::default();
    let gated = ClusterConfig {
        feature_gates: vec!["HostDisk".to_owned()],
        bridge_on_pod_network: false,
        ..ClusterConfig::default()
    };
    assert_eq!(faults(host_disk.clone(), &open), ["spec.volumes[0]"]);
    assert_eq!(faults(host_disk, &gated), Vec::<String>::new());
    let bridge = networks(json!([{"name": "a", "pod": {}}]));
    assert_eq!(faults(bridge.clone(), &open), Vec::<String>::new());
    assert_eq!(
        faults(bridge, &gated),
        ["spec.domain.devices.interfaces[0].name"]
    );
}
