//! The committed CRDs are the ones that the code makes, and our types fit the original's table.

use std::{fs, path::Path};

use kube::CustomResourceExt as _;
use kubevirt_api::{
    crd::{self, upstream},
    v1,
};
use serde_json::Value;

#[test]
fn committed_files_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("crds");
    for (plural, document) in crd::documents() {
        let committed = fs::read_to_string(folder.join(format!("{plural}.yaml"))).unwrap();
        let made = serde_saphyr::to_string(&document).unwrap();
        assert!(
            committed == made,
            "crds/{plural}.yaml is stale: cargo run -p kubevirt-api --example gen-crds"
        );
        let read: Value = serde_saphyr::from_str(&committed).unwrap();
        assert_eq!(read, document, "{plural}: YAML reads back as it was");
    }
}

#[test]
fn every_document_is_a_definition() {
    assert_eq!(crd::all().unwrap().len(), 3);
}

#[test]
fn a_machine_instance_has_no_status_subresource() {
    let has_status = |plural: &str| {
        let documents = crd::documents();
        let (_, document) = documents.iter().find(|(p, _)| *p == plural).unwrap();
        document["spec"]["versions"][0]["subresources"]["status"].is_object()
    };
    assert!(has_status("virtualmachines"));
    assert!(has_status("kubevirts"));
    assert!(!has_status("virtualmachineinstances"));
}

#[test]
fn null_is_only_for_times_and_template_metadata() {
    for (plural, document) in crd::documents() {
        let schema = &document["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        walk("", schema, &mut |path, node| {
            if node["nullable"] == true {
                assert!(
                    node["format"] == "date-time" || path.ends_with(".metadata"),
                    "{plural}{path} is nullable"
                );
            }
        });
    }
}

/// Optional there, but only our own controllers write them, and always.
const ALWAYS_WRITTEN: &str = "v1.VirtualMachineInstancePhaseTransitionTimestamp";

/// A misspelt field, or one that we demand and the original does not, would show here.
#[test]
fn our_fields_are_the_originals() {
    let mut problems = Vec::new();
    for (crd, kind) in [
        (v1::VirtualMachine::crd(), "VirtualMachine"),
        (v1::VirtualMachineInstance::crd(), "VirtualMachineInstance"),
        (v1::KubeVirt::crd(), "KubeVirt"),
    ] {
        let derived = crd::derived(&crd);
        for (part, suffix) in [("spec", "Spec"), ("status", "Status")] {
            let type_ = format!("v1.{kind}{suffix}");
            compare(&type_, &derived["properties"][part], &mut problems);
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn compare(type_: &str, ours: &Value, problems: &mut Vec<String>) {
    let fields = upstream::fields(type_);
    let Some(properties) = ours["properties"].as_object() else {
        return;
    };
    if fields.is_empty() {
        return;
    }
    for (name, schema) in properties {
        let Some(field) = fields.iter().find(|field| field.name == *name) else {
            problems.push(format!("{type_} has no field {name}"));
            continue;
        };
        let demanded = ours["required"]
            .as_array()
            .is_some_and(|list| list.iter().any(|n| n == name));
        if demanded && !field.is_stored() && type_ != ALWAYS_WRITTEN {
            problems.push(format!("{type_}.{name} is optional"));
        }
        let (expected, inner) = expected(&field.kind);
        let found = schema["type"].as_str().unwrap_or("any");
        if expected != found {
            problems.push(format!("{type_}.{name} is {expected}, not {found}"));
        }
        if let Some(inner) = inner {
            let schema = if found == "array" {
                &schema["items"]
            } else {
                schema
            };
            compare(inner, schema, problems);
        }
    }
}

fn expected(kind: &upstream::Kind) -> (&'static str, Option<&str>) {
    use upstream::Kind;
    match kind {
        Kind::Object(type_) => ("object", Some(type_)),
        Kind::List(member, _) => ("array", expected(member).1),
        Kind::Map(_) | Kind::Foreign(_) => ("object", None),
        Kind::Text(_) | Kind::Time => ("string", None),
        Kind::Integer(_) => ("integer", None),
        Kind::Number => ("number", None),
        Kind::Boolean => ("boolean", None),
        Kind::Quantity => ("any", None),
    }
}

fn walk(path: &str, node: &Value, visit: &mut impl FnMut(&str, &Value)) {
    visit(path, node);
    for (name, inner) in node["properties"].as_object().into_iter().flatten() {
        walk(&format!("{path}.{name}"), inner, visit);
    }
    for key in ["items", "additionalProperties"] {
        if node[key].is_object() {
            walk(&format!("{path}[]"), &node[key], visit);
        }
    }
}
