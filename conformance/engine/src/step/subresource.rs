//! `subresource`: a call such as `start` or `pause` on the aggregated API.

use conformance_scenario::model::{Step, step::Subresource};
use http::Method;
use serde_json::json;

use crate::{
    stage::Stage,
    step::{Went, compare},
    wire::{Call, Content, path},
};

pub(super) async fn run(stage: &Stage, step: &Step, call: &Subresource) -> Went {
    let path = path::subresource(
        &stage.namespace,
        call.resource.plural(),
        &call.name,
        &call.verb,
    );
    let options = call.options.clone().unwrap_or_else(|| json!({}));
    let call = Call::new(Method::PUT, path).with_body(Content::Json, options);
    compare(
        &step.expectation,
        stage.ask(Some(step.id.as_str()), &call).await,
    )
}
