//! Barriers: a step that waits asks the judge's own question about itself whenever a line is added, so that what lets
//! the next step begin is what the verdict will later rest on.

use std::time::Duration;

use conformance_judge::{Finding, step_finding};
use conformance_scenario::model::Step;
use tokio::{sync::watch, time::Instant};

use crate::{stage::Stage, step::Went};

/// Deadlines are judged by the journal's clock; a timer that fires a little early must not ask in vain.
const SLACK: Duration = Duration::from_millis(2);

/// Waits until the step's question is answered. `limit` bounds it even when the history never tells.
pub async fn pass(stage: &Stage, step: &Step, limit: Duration) -> Went {
    let mut growth = stage.log.growth();
    let patience = Instant::now() + limit + SLACK;
    loop {
        growth.borrow_and_update();
        let now = stage.log.clock().t();
        let finding = stage.log.read(|entries| {
            step_finding(
                &stage.scenario,
                &step.id,
                entries,
                &stage.shared.limits,
                now,
            )
        });
        let until = match finding {
            Finding::Held { .. } => return Went::Well,
            Finding::Refuted(why) => return Went::TooLate(why.summary),
            Finding::Unknown { why, .. } => return Went::TooLate(why),
            Finding::Broken { why, .. } => return Went::Broken(why),
            Finding::NotReached { point } => {
                return Went::Broken(format!("{point} was never reached"));
            }
            Finding::Pending { until } => {
                Instant::now() + Duration::from_nanos(until.saturating_sub(now)) + SLACK
            }
            Finding::Open => patience,
        };
        if Instant::now() >= patience {
            return Went::TooLate(format!("not seen within {limit:?}"));
        }
        grown(&mut growth, until.min(patience)).await;
    }
}

/// Returns when a line was added, or at this moment.
pub async fn grown(growth: &mut watch::Receiver<usize>, until: Instant) {
    // Both outcomes mean the same to the caller: look again.
    let _ = tokio::time::timeout_at(until, growth.changed()).await;
}
