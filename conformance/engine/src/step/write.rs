//! `apply` and `create`: a manifest goes to the server, strictly checked, labelled as ours.

use conformance_scenario::model::{Step, step::Write};
use http::Method;
use serde_json::Value;

use crate::{
    manifest,
    stage::Stage,
    step::{Went, compare},
    wire::{Call, Content, path},
};

/// Server-side apply.
pub(super) async fn apply(stage: &Stage, step: &Step, write: &Write) -> Went {
    send(stage, step, write, |collection, manifest, mut query| {
        let name = manifest.pointer("/metadata/name")?.as_str()?;
        query.push(("force", "true"));
        let path = path::with_query(&format!("{collection}/{name}"), &query);
        Some(Call::new(Method::PATCH, path).with_body(Content::Apply, manifest.clone()))
    })
    .await
}

/// Plain creation.
pub(super) async fn create(stage: &Stage, step: &Step, write: &Write) -> Went {
    send(stage, step, write, |collection, manifest, query| {
        let path = path::with_query(&collection, &query);
        Some(Call::new(Method::POST, path).with_body(Content::Json, manifest.clone()))
    })
    .await
}

async fn send(
    stage: &Stage,
    step: &Step,
    write: &Write,
    call: impl FnOnce(String, &Value, Vec<(&'static str, &'static str)>) -> Option<Call>,
) -> Went {
    let built = manifest::build(
        &stage.shared.library,
        &stage.scenario,
        write,
        &stage.ambient,
    );
    let mut object = match built {
        Ok(object) => object,
        Err(error) => return Went::broken(error),
    };
    manifest::add_labels(&mut object, &stage.labels());
    let Some(collection) = path::collection_of(&object, &stage.namespace) else {
        return Went::broken("the manifest is of a kind that the suite does not know");
    };
    let mut query = vec![("fieldValidation", "Strict"), ("fieldManager", "virtmark")];
    if write.dry_run.is_some() {
        query.push(("dryRun", "All"));
    }
    match call(collection, &object, query) {
        Some(call) => compare(
            &step.expectation,
            stage.ask(Some(step.id.as_str()), &call).await,
        ),
        None => Went::broken("the manifest has no name"),
    }
}
