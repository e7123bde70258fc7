//! `settle`: later steps begin when objects have stopped changing for a while.

use conformance_scenario::model::{Step, step::Settle};

use crate::{barrier, stage::Stage, step::Went};

pub(super) async fn run(stage: &Stage, step: &Step, settle: &Settle) -> Went {
    let limit = stage.limit(&settle.within);
    stage.waiting(
        format!("{}: {} to settle", step.id, settle.kinds.join(", ")),
        Some(limit),
    );
    barrier::pass(stage, step, limit).await
}
