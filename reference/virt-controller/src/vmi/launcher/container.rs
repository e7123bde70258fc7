//! The container `compute`, in which the launcher and its machine run.

use k8s_openapi::api::core::v1::{
    Capabilities, Container, ContainerPort, EnvVar, EnvVarSource, ObjectFieldSelector,
    Probe as PodProbe, SecurityContext,
};
use kube::ResourceExt as _;
use kubevirt_api::v1::{Probe, VirtualMachineInstanceSpec};

use super::{USER, grace, resources, volumes};
use crate::vmi::{observe::Observed, pod::COMPUTE};

/// What the launcher gets beyond the guest's own time before it ends the machine by force.
const LAUNCHER_GRACE_EXTRA: i64 = 15;
/// A guest boots before its probes can succeed.
const PROBE_DELAY: i32 = 10;

pub(super) fn compute(observed: &Observed, overhead: i64) -> Container {
    let spec = &observed.vmi.spec;
    Container {
        name: COMPUTE.to_owned(),
        image: Some(observed.launcher_image.clone()),
        image_pull_policy: Some(observed.configuration.image_pull_policy.clone()),
        command: Some(command(observed)),
        env: Some(vec![pod_name()]),
        resources: Some(resources::resources(
            spec,
            &observed.configuration,
            overhead,
        )),
        security_context: Some(SecurityContext {
            run_as_user: Some(USER),
            run_as_group: Some(USER),
            run_as_non_root: Some(true),
            allow_privilege_escalation: Some(false),
            capabilities: Some(Capabilities {
                add: Some(vec!["NET_BIND_SERVICE".to_owned()]),
                drop: Some(vec!["ALL".to_owned()]),
            }),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(volumes::mounts(spec)),
        ports: ports(spec),
        readiness_probe: spec.readiness_probe.as_ref().and_then(probe),
        liveness_probe: spec.liveness_probe.as_ref().and_then(probe),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

fn command(observed: &Observed) -> Vec<String> {
    let vmi = &observed.vmi;
    let grace = (grace(vmi) + LAUNCHER_GRACE_EXTRA).to_string();
    let (name, uid) = (vmi.name_any(), vmi.uid().unwrap_or_default());
    let namespace = vmi.namespace().unwrap_or_default();
    let mut command: Vec<String> = [
        "/usr/bin/virt-launcher",
        "--name",
        &name,
        "--uid",
        &uid,
        "--namespace",
        &namespace,
        "--grace-period-seconds",
        &grace,
    ]
    .map(str::to_owned)
    .to_vec();
    if observed.configuration.use_emulation {
        command.push("--allow-emulation".to_owned());
    }
    command
}

fn pod_name() -> EnvVar {
    EnvVar {
        name: "POD_NAME".to_owned(),
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".to_owned()),
                field_path: "metadata.name".to_owned(),
            }),
            ..EnvVarSource::default()
        }),
        ..EnvVar::default()
    }
}

/// Ports of the interfaces, for people and for Services that name them.
fn ports(spec: &VirtualMachineInstanceSpec) -> Option<Vec<ContainerPort>> {
    let interfaces = spec.domain.devices.interfaces.iter().flatten();
    let ports: Vec<_> = interfaces
        .flat_map(|interface| interface.ports.iter().flatten())
        .map(|port| ContainerPort {
            name: port.name.clone(),
            container_port: port.port,
            protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".to_owned())),
            ..ContainerPort::default()
        })
        .collect();
    (!ports.is_empty()).then_some(ports)
}

/// Probes over the network reach the guest as they are. Those by command need the guest agent.
fn probe(probe: &Probe) -> Option<PodProbe> {
    if probe.http_get.is_none() && probe.tcp_socket.is_none() {
        return None;
    }
    let delay = probe.initial_delay_seconds.unwrap_or(0);
    Some(PodProbe {
        initial_delay_seconds: Some(delay.saturating_add(PROBE_DELAY)),
        ..PodProbe::from(probe)
    })
}
