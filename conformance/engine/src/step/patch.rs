//! `patch`: a merge patch or a JSON patch of one object.

use conformance_scenario::{
    kinds,
    model::{Step, step::Patch},
};
use http::Method;
use serde_json::Value;

use crate::{
    stage::Stage,
    step::{Went, compare},
    wire::{Call, Content, path},
};

pub(super) async fn run(stage: &Stage, step: &Step, patch: &Patch) -> Went {
    let Some(kind) = kinds::find(&patch.kind) else {
        return Went::broken(format!("the suite does not know the kind {}", patch.kind));
    };
    let body = match (&patch.merge, &patch.json) {
        (Some(merge), None) => (Content::MergePatch, merge.clone()),
        (None, Some(list)) => (Content::JsonPatch, Value::Array(list.clone())),
        _ => return Went::broken("a patch is either merge or json"),
    };
    let mut query = vec![("fieldValidation", "Strict"), ("fieldManager", "virtmark")];
    if patch.dry_run.is_some() {
        query.push(("dryRun", "All"));
    }
    let namespace = patch.namespace.as_deref().unwrap_or(&stage.namespace);
    let path = path::with_query(&path::object(kind, namespace, &patch.name), &query);
    let call = Call::new(Method::PATCH, path).with_body(body.0, body.1);
    compare(
        &step.expectation,
        stage.ask(Some(step.id.as_str()), &call).await,
    )
}
