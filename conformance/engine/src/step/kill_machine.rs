//! `killMachine`: the machine process of a VMI dies, without the platform being asked.

use conformance_scenario::model::{Step, step::KillMachine};

use crate::{
    machine::{self, KillError},
    stage::Stage,
    step::Went,
};

pub(super) async fn run(stage: &Stage, step: &Step, kill: &KillMachine) -> Went {
    stage.waiting(
        format!("{}: the machine of {} to be killed", step.id, kill.vmi),
        Some(machine::LIMIT),
    );
    match machine::kill(stage, step.id.as_str(), &kill.vmi).await {
        Ok(()) => Went::Well,
        Err(KillError::Call(error)) => Went::Broken(error.text()),
        Err(error) => Went::broken(error),
    }
}
