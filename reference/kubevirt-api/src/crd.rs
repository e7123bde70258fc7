//! The CustomResourceDefinitions, complete with columns, short names and schemas.

pub mod schema;
pub mod upstream;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt as _;
use serde_json::{Value, json};

use crate::v1;

/// What differs from kind to kind.
struct Shape {
    kind: &'static str,
    plural: &'static str,
    short: [&'static str; 2],
    label: &'static str,
    status_subresource: bool,
    description: &'static str,
    columns: &'static [Column],
}

/// A column that `kubectl get` prints: name, type, path, and whether only with `-o wide`.
struct Column(&'static str, &'static str, &'static str, bool);

const AGE: Column = Column("Age", "date", ".metadata.creationTimestamp", false);

const VIRTUAL_MACHINE: Shape = Shape {
    kind: "VirtualMachine",
    plural: "virtualmachines",
    short: ["vm", "vms"],
    label: "kubevirt.io",
    status_subresource: true,
    description: "The wish that a virtual machine exists, whether it runs or not. \
                  While it is to run, a VirtualMachineInstance of the same name stands for the running machine.",
    columns: &[
        AGE,
        Column("Status", "string", ".status.printableStatus", false),
        Column(
            "Ready",
            "string",
            r#".status.conditions[?(@.type=="Ready")].status"#,
            false,
        ),
    ],
};

const VIRTUAL_MACHINE_INSTANCE: Shape = Shape {
    kind: "VirtualMachineInstance",
    plural: "virtualmachineinstances",
    short: ["vmi", "vmis"],
    label: "kubevirt.io",
    // The original has none either: its controllers write the whole object.
    status_subresource: false,
    description: "One virtual machine that runs, from the creation of its pod to its end.",
    columns: &[
        AGE,
        Column("Phase", "string", ".status.phase", false),
        Column("IP", "string", ".status.interfaces[0].ipAddress", false),
        Column("NodeName", "string", ".status.nodeName", false),
        Column(
            "Ready",
            "string",
            r#".status.conditions[?(@.type=="Ready")].status"#,
            false,
        ),
        Column(
            "Live-Migratable",
            "string",
            r#".status.conditions[?(@.type=="LiveMigratable")].status"#,
            true,
        ),
        Column(
            "Paused",
            "string",
            r#".status.conditions[?(@.type=="Paused")].status"#,
            true,
        ),
    ],
};

const KUBEVIRT: Shape = Shape {
    kind: "KubeVirt",
    plural: "kubevirts",
    short: ["kv", "kvs"],
    label: "operator.kubevirt.io",
    status_subresource: true,
    description: "The wish that the whole system is installed, and its settings.",
    columns: &[AGE, Column("Phase", "string", ".status.phase", false)],
};

/// All CustomResourceDefinitions: VirtualMachine, VirtualMachineInstance, KubeVirt.
pub fn all() -> Result<Vec<CustomResourceDefinition>, serde_json::Error> {
    documents()
        .into_iter()
        .map(|(_, document)| serde_json::from_value(document))
        .collect()
}

/// The same as JSON, with the plural name of each.
#[must_use]
pub fn documents() -> Vec<(&'static str, Value)> {
    vec![
        (
            VIRTUAL_MACHINE.plural,
            document(&VIRTUAL_MACHINE, &virtual_machine_schema()),
        ),
        (
            VIRTUAL_MACHINE_INSTANCE.plural,
            document(
                &VIRTUAL_MACHINE_INSTANCE,
                &virtual_machine_instance_schema(),
            ),
        ),
        (KUBEVIRT.plural, document(&KUBEVIRT, &kubevirt_schema())),
    ]
}

/// Schema of VirtualMachine.
#[must_use]
pub fn virtual_machine_schema() -> Value {
    root(&VIRTUAL_MACHINE, &v1::VirtualMachine::crd())
}

/// Schema of VirtualMachineInstance.
#[must_use]
pub fn virtual_machine_instance_schema() -> Value {
    root(
        &VIRTUAL_MACHINE_INSTANCE,
        &v1::VirtualMachineInstance::crd(),
    )
}

/// Schema of KubeVirt.
#[must_use]
pub fn kubevirt_schema() -> Value {
    root(&KUBEVIRT, &v1::KubeVirt::crd())
}

/// What the derive makes of our types, before it is mended.
#[must_use]
pub fn derived(crd: &CustomResourceDefinition) -> Value {
    crd.spec
        .versions
        .first()
        .and_then(|version| version.schema.as_ref())
        .and_then(|schema| serde_json::to_value(&schema.open_api_v3_schema).ok())
        .unwrap_or_default()
}

fn root(shape: &Shape, crd: &CustomResourceDefinition) -> Value {
    let mut derived = derived(crd);
    let mut part = |name: &str| {
        let mut part = derived["properties"][name].take();
        let type_ = format!("v1.{}{}", shape.kind, capital(name));
        schema::complete(&mut part, &type_);
        part
    };
    let (mut spec, mut status) = (part("spec"), part("status"));
    spec["description"] = json!("What is wanted.");
    status["description"] = json!("What is known.");
    json!({
        "type": "object",
        "description": shape.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": "Version of the schema that this object follows."},
            "kind": {"type": "string", "description": format!("Always {}.", shape.kind)},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        }
    })
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

fn document(shape: &Shape, schema: &Value) -> Value {
    let subresources = if shape.status_subresource {
        json!({"status": {}})
    } else {
        json!({})
    };
    let version = |name: &str, storage: bool| {
        let mut version = json!({
            "name": name,
            "served": true,
            "storage": storage,
            "additionalPrinterColumns": shape.columns.iter().map(column).collect::<Vec<_>>(),
            "schema": {"openAPIV3Schema": schema},
            "subresources": subresources,
        });
        if !storage {
            version["deprecated"] = json!(true);
            version["deprecationWarning"] = json!(format!(
                "kubevirt.io/{name} is now deprecated and will be removed in a future release."
            ));
        }
        version
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{}.kubevirt.io", shape.plural),
            "labels": {shape.label: ""},
        },
        "spec": {
            "group": "kubevirt.io",
            "scope": "Namespaced",
            "names": {
                "kind": shape.kind,
                "listKind": format!("{}List", shape.kind),
                "plural": shape.plural,
                "singular": shape.kind.to_lowercase(),
                "shortNames": shape.short,
                "categories": ["all"],
            },
            "conversion": {"strategy": "None"},
            "versions": [version("v1", true), version("v1alpha3", false)],
        }
    })
}

fn column(column: &Column) -> Value {
    let Column(name, type_, path, wide) = column;
    let mut made = json!({"name": name, "type": type_, "jsonPath": path});
    if *wide {
        made["priority"] = json!(1);
    }
    made
}
