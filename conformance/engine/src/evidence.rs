//! What is kept of a scenario that did not go well, taken before anything is deleted. What cannot be had is written
//! down as that; it never changes a verdict.

use std::path::{Path, PathBuf};

use conformance_journal::Event;
use conformance_scenario::{
    kinds::{self, KindInfo},
    model::EvidenceKind,
};
use serde_json::{Value, json};

use crate::{
    stage::Stage,
    wire::{Call, path},
};

/// Kinds that explain most failures, beside those that the scenario records.
const USUAL: [&str; 3] = ["VirtualMachine", "VirtualMachineInstance", "Pod"];
/// Lines of a pod's log.
const TAIL: &str = "400";

/// Collects what the scenario asks for, into the journal and, as files, into a folder.
pub async fn collect(stage: &Stage, folder: Option<&Path>) {
    let folder = folder.map(|folder| folder.join(stage.id().as_str()));
    for kind in &stage.scenario.spec.evidence.on_failure {
        for (name, content) in pieces(stage, *kind).await {
            if let Some(folder) = &folder
                && let Err(error) = save(folder.clone(), &name, &content).await
            {
                tracing::warn!(%error, %name, "failed to write evidence");
            }
            stage.log.write(Event::Evidence { name, content });
        }
    }
}

async fn pieces(stage: &Stage, kind: EvidenceKind) -> Vec<(String, Value)> {
    match kind {
        EvidenceKind::Objects => {
            let mut wanted: Vec<&str> = USUAL.to_vec();
            wanted.extend(
                stage
                    .scenario
                    .spec
                    .record
                    .iter()
                    .map(|record| record.kind.as_str()),
            );
            wanted.sort_unstable();
            wanted.dedup();
            let mut found = Vec::new();
            for kind in wanted.into_iter().filter_map(kinds::find) {
                found.push((format!("objects/{}", kind.kind), list(stage, kind).await));
            }
            found
        }
        EvidenceKind::Events => match kinds::find("Event") {
            Some(kind) => vec![("events".to_owned(), list(stage, kind).await)],
            None => Vec::new(),
        },
        EvidenceKind::PodLogs => pod_logs(stage).await,
        EvidenceKind::Console => vec![("console".to_owned(), console(stage))],
        EvidenceKind::NodeConditions => match kinds::find("Node") {
            Some(kind) => vec![(
                "nodeConditions".to_owned(),
                conditions(&list(stage, kind).await),
            )],
            None => Vec::new(),
        },
    }
}

async fn list(stage: &Stage, kind: &KindInfo) -> Value {
    fetch(stage, kind.collection_path(&stage.namespace)).await
}

async fn pod_logs(stage: &Stage) -> Vec<(String, Value)> {
    let Some(kind) = kinds::find("Pod") else {
        return Vec::new();
    };
    let pods = list(stage, kind).await;
    let mut found = Vec::new();
    for pod in pods
        .get("items")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let Some(name) = pod.pointer("/metadata/name").and_then(Value::as_str) else {
            continue;
        };
        let containers = pod.pointer("/spec/containers").and_then(Value::as_array);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(|container| container.get("name")?.as_str())
        {
            let query = [("container", container), ("tailLines", TAIL)];
            let path = format!("{}/log", path::object(kind, &stage.namespace, name));
            let text = fetch(stage, path::with_query(&path, &query)).await;
            found.push((format!("podLogs/{name}.{container}"), text));
        }
    }
    found
}

/// The body, or what stands in its way. A log is text even when it looks like JSON.
async fn fetch(stage: &Stage, path: String) -> Value {
    match stage.shared.wire.call(&Call::get(path)).await {
        Ok(reply) => reply.body,
        Err(error) => json!({"unavailable": error.text()}),
    }
}

fn console(stage: &Stage) -> Value {
    let line = |entry: &conformance_journal::Entry| match &entry.event {
        Event::Console {
            vmi,
            client,
            what,
            text,
        } => Some(format!(
            "{:>8} ms {vmi} {client} {what:?} {}",
            entry.millis(),
            text.trim_end()
        )),
        _ => None,
    };
    let lines: Vec<String> = stage
        .log
        .read(|entries| entries.iter().filter_map(line).collect());
    Value::String(lines.join("\n"))
}

fn conditions(nodes: &Value) -> Value {
    let items = nodes.get("items").and_then(Value::as_array);
    items
        .into_iter()
        .flatten()
        .map(|node| {
            json!({
                "name": node.pointer("/metadata/name"),
                "labels": node.pointer("/metadata/labels"),
                "allocatable": node.pointer("/status/allocatable"),
                "conditions": node.pointer("/status/conditions"),
            })
        })
        .collect()
}

async fn save(folder: PathBuf, name: &str, content: &Value) -> std::io::Result<()> {
    let (ending, text) = match content {
        Value::String(text) => ("txt", text.clone()),
        other => ("json", serde_json::to_string_pretty(other)?),
    };
    let file = folder.join(format!("{}.{ending}", name.replace('/', "-")));
    tokio::fs::create_dir_all(&folder).await?;
    tokio::fs::write(file, text).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_and_objects_become_files() {
        let folder = tempfile::tempdir().unwrap();
        save(
            folder.path().join("VM-LIFE-0001"),
            "podLogs/a.compute",
            &json!("hello"),
        )
        .await
        .unwrap();
        save(
            folder.path().join("VM-LIFE-0001"),
            "events",
            &json!({"items": []}),
        )
        .await
        .unwrap();
        let text =
            std::fs::read_to_string(folder.path().join("VM-LIFE-0001/podLogs-a.compute.txt"))
                .unwrap();
        assert_eq!(text, "hello");
        assert!(folder.path().join("VM-LIFE-0001/events.json").exists());
    }

    #[test]
    fn nodes_are_cut_down_to_what_explains() {
        let nodes = json!({"items": [{"metadata": {"name": "n"}, "status": {"conditions": [], "images": [1]}}]});
        let cut = conditions(&nodes);
        assert_eq!(cut[0]["name"], "n");
        assert_eq!(cut[0].get("images"), None);
    }
}
