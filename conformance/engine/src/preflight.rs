//! What there is before anything is done: is the API served, who serves it, which nodes can run guests.

use conformance_scenario::{
    kinds,
    model::{Requirement, Virtualization, step::Resource},
    spec::Platform,
};
use serde_json::{Value, json};

use crate::wire::{Call, Wire, path};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Version of the API server.
    pub kubernetes: String,
    /// Version that the platform's own object tells.
    pub platform_version: Option<String>,
    /// Phase that the platform's own object tells.
    pub platform_phase: Option<String>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Features that the platform claims.
    pub claims: Vec<String>,
}

/// A node as far as guests are concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Whether the platform takes guests there.
    pub schedulable: bool,
    /// Whether it offers hardware virtualisation.
    pub kvm: bool,
}

/// An environment in which no scenario makes sense.
#[derive(Debug, thiserror::Error)]
pub enum NotReady {
    /// Nobody answers.
    #[error("the API server does not answer: {0}")]
    Silent(String),
    /// Not for us.
    #[error("the API server refuses {what}: {code} {message}")]
    Refused {
        /// What was asked.
        what: &'static str,
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
    /// A cluster without a virtualisation platform.
    #[error("the cluster does not serve kubevirt.io/v1 {0}")]
    NotServed(&'static str),
}

impl NotReady {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Silent(_) => {
                "check the kubeconfig and context: `kubectl get nodes` with the same --kubeconfig must answer"
            }
            Self::Refused { .. } => "`virtmark rbac` prints the rights that a run needs",
            Self::NotServed(_) => {
                "install the platform first; `cargo xtask cluster up --reference` makes a cluster that has one"
            }
        }
    }
}

/// Looks around.
pub async fn look(wire: &Wire, platform: &Platform) -> Result<Facts, NotReady> {
    let version = ask(wire, "/version", "its version").await?;
    let kubernetes = version
        .get("gitVersion")
        .and_then(Value::as_str)
        .unwrap_or("unknown")
        .to_owned();
    served(wire).await?;
    let nodes = ask(wire, "/api/v1/nodes", "the list of nodes").await?;
    let own = own_object(wire, platform).await;
    Ok(Facts {
        kubernetes,
        platform_version: text(&own, "/status/observedKubeVirtVersion"),
        platform_phase: text(&own, "/status/phase"),
        nodes: nodes_of(&nodes),
        claims: claims_of(&own, platform),
    })
}

impl Facts {
    /// For the journal.
    pub fn to_json(&self, platform: &Platform) -> Value {
        let nodes: Vec<Value> = self
            .nodes
            .iter()
            .map(
                |node| json!({"name": node.name, "schedulable": node.schedulable, "kvm": node.kvm}),
            )
            .collect();
        json!({
            "kubernetes": self.kubernetes,
            "adapter": platform.name,
            "platformVersion": self.platform_version,
            "platformPhase": self.platform_phase,
            "nodes": nodes,
            "virtualization": if self.nodes.iter().any(|node| node.kvm) { "kvm" } else { "emulation" },
        })
    }

    /// The first requirement that is not met, in words.
    pub fn missing(&self, requires: &[Requirement], platform: &Platform) -> Option<String> {
        let schedulable = self.nodes.iter().filter(|node| node.schedulable).count();
        requires.iter().find_map(|requirement| match requirement {
            Requirement::Image(name) if !platform.images.contains_key(name) => Some(format!(
                "platform {} names no image \"{name}\"",
                platform.name
            )),
            Requirement::Nodes(count)
                if usize::try_from(*count).is_ok_and(|count| schedulable < count) =>
            {
                Some(format!(
                    "{count} schedulable nodes are needed, {schedulable} are there"
                ))
            }
            Requirement::Virtualization(Virtualization::Kvm)
                if !self.nodes.iter().any(|node| node.kvm) =>
            {
                Some("no node offers devices.kubevirt.io/kvm".to_owned())
            }
            _ => None,
        })
    }
}

async fn served(wire: &Wire) -> Result<(), NotReady> {
    let reply = wire.call(&Call::get("/apis/kubevirt.io/v1")).await;
    let reply = reply.map_err(|error| NotReady::Silent(error.text()))?;
    let resources = reply.body.get("resources").and_then(Value::as_array);
    let has = |plural: &str| {
        let mut names = resources
            .into_iter()
            .flatten()
            .filter_map(|resource| resource.get("name")?.as_str());
        names.any(|name| name == plural)
    };
    for resource in [Resource::VirtualMachine, Resource::VirtualMachineInstance] {
        if !has(resource.plural()) {
            return Err(NotReady::NotServed(resource.plural()));
        }
    }
    Ok(())
}

async fn ask(wire: &Wire, path: &str, what: &'static str) -> Result<Value, NotReady> {
    let reply = wire.call(&Call::get(path)).await;
    let reply = reply.map_err(|error| NotReady::Silent(error.text()))?;
    if reply.is_success() {
        Ok(reply.body)
    } else {
        Err(NotReady::Refused {
            what,
            code: reply.code,
            message: reply.message(),
        })
    }
}

/// A platform may tell nothing about itself; then the adapter speaks for it.
async fn own_object(wire: &Wire, platform: &Platform) -> Value {
    let Some(kind) = kinds::find(&platform.discovery.kind) else {
        return Value::Null;
    };
    let path = path::object(
        kind,
        &platform.discovery.namespace,
        &platform.discovery.name,
    );
    match wire.call(&Call::get(path)).await {
        Ok(reply) if reply.is_success() => reply.body,
        _ => Value::Null,
    }
}

fn claims_of(own: &Value, platform: &Platform) -> Vec<String> {
    let told = text(own, "/metadata/annotations/virtmark.dev~1claims");
    match told {
        Some(list) => list
            .split(',')
            .map(|name| name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .collect(),
        None => platform.claims.clone(),
    }
}

fn nodes_of(list: &Value) -> Vec<Node> {
    let items = list.get("items").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .map(|node| Node {
            name: text(node, "/metadata/name").unwrap_or_default(),
            schedulable: text(node, "/metadata/labels/kubevirt.io~1schedulable").as_deref()
                == Some("true"),
            kvm: text(node, "/status/allocatable/devices.kubevirt.io~1kvm")
                .is_some_and(|count| count != "0"),
        })
        .collect()
}

fn text(object: &Value, pointer: &str) -> Option<String> {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use conformance_scenario::spec::Discovery;
    use rstest::rstest;

    use super::*;

    fn platform() -> Platform {
        Platform {
            name: "p".into(),
            about: String::new(),
            images: BTreeMap::from([("probe".into(), "i".into())]),
            discovery: Discovery {
                kind: "KubeVirt".into(),
                namespace: "kubevirt".into(),
                name: "kubevirt".into(),
            },
            kubeconfig_hints: Vec::new(),
            claims: vec!["A".into()],
            kill_machine: None,
        }
    }

    fn facts() -> Facts {
        let list = json!({"items": [
            {"metadata": {"name": "a", "labels": {"kubevirt.io/schedulable": "true"}},
             "status": {"allocatable": {"devices.kubevirt.io/kvm": "1k"}}},
            {"metadata": {"name": "b", "labels": {"kubevirt.io/schedulable": "false"}},
             "status": {"allocatable": {"devices.kubevirt.io/kvm": "0"}}},
        ]});
        Facts {
            nodes: nodes_of(&list),
            ..Facts::default()
        }
    }

    #[test]
    fn nodes_are_read_from_labels_and_allocatable() {
        let nodes = facts().nodes;
        assert_eq!((nodes[0].schedulable, nodes[0].kvm), (true, true));
        assert_eq!((nodes[1].schedulable, nodes[1].kvm), (false, false));
    }

    #[rstest]
    #[case(Requirement::Image("probe".into()), None)]
    #[case(Requirement::Image("other".into()), Some("names no image"))]
    #[case(Requirement::Nodes(1), None)]
    #[case(
        Requirement::Nodes(2),
        Some("2 schedulable nodes are needed, 1 are there")
    )]
    #[case(Requirement::Virtualization(Virtualization::Kvm), None)]
    fn what_is_missing_is_said(#[case] requirement: Requirement, #[case] wanted: Option<&str>) {
        let missing = facts().missing(&[requirement], &platform());
        match wanted {
            None => assert_eq!(missing, None),
            Some(part) => assert!(missing.unwrap().contains(part)),
        }
    }

    #[test]
    fn a_platform_that_says_nothing_claims_what_its_adapter_says() {
        assert_eq!(claims_of(&Value::Null, &platform()), ["A"]);
        let own = json!({"metadata": {"annotations": {"virtmark.dev/claims": "B, C"}}});
        assert_eq!(claims_of(&own, &platform()), ["B", "C"]);
    }
}
