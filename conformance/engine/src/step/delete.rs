//! `delete`: one object by name or several by label, each by its uid, so that a successor of the same name survives.

use conformance_scenario::{
    kinds::{self, KindInfo},
    model::{
        Step,
        step::{Delete, Propagation},
    },
};
use serde_json::{Map, Value};

use crate::{
    stage::{Stage, delete_call},
    step::{Went, compare},
    wire::{Call, path},
};

pub(super) async fn run(stage: &Stage, step: &Step, delete: &Delete) -> Went {
    let Some(kind) = kinds::find(&delete.kind) else {
        return Went::broken(format!("the suite does not know the kind {}", delete.kind));
    };
    let targets = match targets(stage, kind, delete).await {
        Ok(targets) => targets,
        Err(went) => return went,
    };
    for (name, uid) in targets {
        let path = path::object(kind, &stage.namespace, &name);
        let call = delete_call(path, uid.as_deref(), options(delete));
        match compare(
            &step.expectation,
            stage.ask(Some(step.id.as_str()), &call).await,
        ) {
            Went::Well => {}
            other => return other,
        }
    }
    Went::Well
}

/// Names with uids. An object that is not there is deleted all the same: the server's answer is what the step is about.
async fn targets(
    stage: &Stage,
    kind: &KindInfo,
    delete: &Delete,
) -> Result<Vec<(String, Option<String>)>, Went> {
    match (&delete.name, &delete.selector) {
        (Some(name), None) => {
            let call = Call::get(path::object(kind, &stage.namespace, name));
            let reply = stage
                .ask(None, &call)
                .await
                .map_err(|error| Went::Broken(error.text()))?;
            Ok(vec![(name.clone(), meta(&reply.body, "uid"))])
        }
        (None, Some(selector)) => {
            let query = [("labelSelector", selector.as_str())];
            let call = Call::get(path::with_query(
                &kind.collection_path(&stage.namespace),
                &query,
            ));
            let reply = stage
                .ask(None, &call)
                .await
                .map_err(|error| Went::Broken(error.text()))?;
            let items = reply
                .body
                .get("items")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let target = |item: &Value| Some((meta(item, "name")?, meta(item, "uid")));
            let found: Vec<_> = items.iter().filter_map(target).collect();
            if found.is_empty() {
                return Err(Went::Unexpected(format!(
                    "no {} with {selector} to delete",
                    kind.kind
                )));
            }
            Ok(found)
        }
        _ => Err(Went::broken("a delete needs either name or selector")),
    }
}

fn options(delete: &Delete) -> Map<String, Value> {
    let mut options = Map::new();
    if let Some(propagation) = delete.propagation {
        let word = match propagation {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        };
        options.insert("propagationPolicy".to_owned(), word.into());
    }
    if let Some(seconds) = delete.grace_period_seconds {
        options.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    options
}

fn meta(object: &Value, key: &str) -> Option<String> {
    Some(
        object
            .pointer(&format!("/metadata/{key}"))?
            .as_str()?
            .to_owned(),
    )
}
