//! `get`: one object is read once.

use conformance_scenario::{
    kinds,
    model::{Step, step::Get},
};

use crate::{
    stage::Stage,
    step::{Went, compare},
    wire::{Call, path},
};

pub(super) async fn run(stage: &Stage, step: &Step, get: &Get) -> Went {
    let Some(kind) = kinds::find(&get.kind) else {
        return Went::broken(format!("the suite does not know the kind {}", get.kind));
    };
    let namespace = get.namespace.as_deref().unwrap_or(&stage.namespace);
    let call = Call::get(path::object(kind, namespace, &get.name));
    compare(
        &step.expectation,
        stage.ask(Some(step.id.as_str()), &call).await,
    )
}
