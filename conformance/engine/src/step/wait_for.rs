//! `waitFor`: later steps begin when an object was seen as described.

use conformance_scenario::model::{Step, step::WaitFor};

use crate::{barrier, stage::Stage, step::Went};

pub(super) async fn run(stage: &Stage, step: &Step, wait: &WaitFor) -> Went {
    let limit = stage.limit(&wait.within);
    let state = if wait.gone {
        "to be gone"
    } else {
        "as described"
    };
    stage.waiting(format!("{}: {} {state}", step.id, wait.object), Some(limit));
    barrier::pass(stage, step, limit).await
}
