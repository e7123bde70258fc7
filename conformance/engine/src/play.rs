//! One scenario from its namespace to its last line: watches, steps, the wait for what time alone decides, evidence.

use std::{path::PathBuf, sync::Arc, time::Duration};

use conformance_journal::{Event, entry::ScenarioOutcome};
use conformance_judge::{Status, judge, outlook};
use conformance_scenario::{
    Scenario,
    library::Loaded,
    model::{Deadline, Exclusive},
    spec::Class,
};
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    barrier::grown,
    evidence,
    log::{Log, Recorder},
    namespace::{self, Namespace},
    progress::News,
    recording::Recording,
    restore::{self, Snapshot},
    stage::{Shared, Stage},
    step::{self, Went},
    wire::Call,
};

/// Lines come in bursts; the history is looked at again at most this often.
const PACE: Duration = Duration::from_millis(20);

/// When a scenario's objects are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleanup {
    /// Whatever happened.
    Always,
    /// Unless it went wrong.
    OnSuccess,
    /// Not at all.
    Never,
}

/// How scenarios are played.
#[derive(Debug, Clone)]
pub struct Manner {
    /// When objects are deleted.
    pub cleanup: Cleanup,
    /// Where evidence files go.
    pub evidence: Option<PathBuf>,
}

/// A scenario whose recording has ended.
pub struct Played {
    /// What the judge says of it, for progress and for stopping early.
    pub status: Status,
    /// Its objects are being deleted; await it before the run ends.
    pub cleanup: JoinHandle<()>,
}

/// Plays one scenario.
pub async fn play(
    shared: Shared,
    loaded: Arc<Loaded<Scenario>>,
    recorder: Arc<Recorder>,
    manner: Manner,
) -> Played {
    let began = Instant::now();
    let scenario = Arc::new(loaded.value.clone());
    let id = scenario.id().clone();
    shared.listener.hear(News::Started { id: id.clone() });
    let log = Log::new(recorder, id.as_str());
    let name = namespace::name(&shared.run, &id);
    let stage = Arc::new(Stage::new(shared, scenario, name.clone(), log));
    let home = namespace::create(&stage.shared.wire, name, &stage.labels()).await;
    let namespace = home.as_ref().ok().map(|home| home.name.clone());
    stage.log.write(Event::ScenarioStart {
        digest: loaded.digest.clone(),
        namespace,
    });
    let (home, before) = match home {
        Ok(home) => {
            let before = perform(&stage).await;
            (Some(home), before)
        }
        Err(error) => {
            end(&stage, ScenarioOutcome::Aborted, Some(error.to_string()));
            (None, None)
        }
    };
    let verdict = stage
        .log
        .read(|entries| judge(&stage.scenario, entries, &stage.shared.limits));
    let failed = verdict.status != Status::Pass;
    if failed && home.is_some() {
        evidence::collect(&stage, manner.evidence.as_deref()).await;
    }
    stage.shared.listener.hear(News::Finished {
        id,
        status: verdict.status,
        took: began.elapsed(),
    });
    let delete = match manner.cleanup {
        Cleanup::Always => true,
        Cleanup::OnSuccess => !failed,
        Cleanup::Never => false,
    };
    let cleanup = tokio::spawn(tidy(stage, home.filter(|_| delete), before));
    Played {
        status: verdict.status,
        cleanup,
    }
}

/// Writes down that a scenario is not played, and why.
pub fn leave_out(
    shared: &Shared,
    loaded: &Loaded<Scenario>,
    recorder: &Arc<Recorder>,
    outcome: ScenarioOutcome,
    reason: String,
) {
    let id = loaded.value.id();
    let log = Log::new(recorder.clone(), id.as_str());
    log.write(Event::ScenarioStart {
        digest: loaded.digest.clone(),
        namespace: None,
    });
    log.write(Event::ScenarioEnd {
        outcome,
        reason: Some(reason),
    });
    let status = log
        .read(|entries| judge(&loaded.value, entries, &shared.limits))
        .status;
    shared.listener.hear(News::Finished {
        id: id.clone(),
        status,
        took: Duration::ZERO,
    });
}

/// Everything between the first and the last line. Gives what a cluster-wide scenario has to put back.
async fn perform(stage: &Stage) -> Option<Snapshot> {
    let mut before = None;
    if stage.scenario.spec.exclusive == Exclusive::Cluster {
        match restore::remember(&stage.shared.wire, &stage.shared.platform).await {
            Ok(snapshot) => before = snapshot,
            Err(error) => {
                end(
                    stage,
                    ScenarioOutcome::Aborted,
                    Some(format!("cannot remember how the cluster was: {error}")),
                );
                return None;
            }
        }
    }
    let recording = match Recording::open(stage).await {
        Ok(recording) => recording,
        Err(error) => {
            end(stage, ScenarioOutcome::Aborted, Some(error.to_string()));
            return before;
        }
    };
    let mut well = true;
    for step in &stage.scenario.spec.steps {
        if step::run(stage, step).await != Went::Well {
            well = false;
            break;
        }
    }
    if well {
        linger(stage).await;
    }
    own_up(stage).await;
    recording.close().await;
    stage.consoles.hang_up();
    // An interrupted scenario has no end: nobody may take it for a finished one.
    if !stage.shared.stop.is_cancelled() {
        end(stage, ScenarioOutcome::Completed, None);
    }
    before
}

/// Goes on recording until nothing is left that time alone decides.
async fn linger(stage: &Stage) {
    let mut growth = stage.log.growth();
    loop {
        growth.borrow_and_update();
        let now = stage.log.clock().t();
        let outlook = stage
            .log
            .read(|entries| outlook(&stage.scenario, entries, &stage.shared.limits, now));
        let Some(next) = outlook.next() else { return };
        let words: Vec<&str> = outlook
            .waiting
            .iter()
            .map(|waiting| waiting.id.as_str())
            .collect();
        let left = Duration::from_nanos(next.saturating_sub(now));
        stage.waiting(words.join(", "), Some(left));
        let until = Instant::now() + left + Duration::from_millis(2);
        let look = async {
            grown(&mut growth, until).await;
            tokio::time::sleep(PACE).await;
        };
        if stage.shared.stop.run_until_cancelled(look).await.is_none() {
            return;
        }
    }
}

/// Before something counts as not having happened: was there anybody to tell? A server that hangs breaks no watch.
async fn own_up(stage: &Stage) {
    let asked = stage.log.clock().t();
    let now = stage
        .log
        .read(|entries| outlook(&stage.scenario, entries, &stage.shared.limits, asked));
    if now.refuted.is_empty() || stage.shared.wire.call(&Call::get("/version")).await.is_ok() {
        return;
    }
    let last = stage
        .log
        .read(|entries| entries.last().map_or(0, |entry| entry.t));
    for record in &stage.scenario.spec.record {
        stage.log.write(Event::Gap {
            kind: record.kind.clone(),
            namespace: record.namespace.clone(),
            from: last,
            to: stage.log.clock().t(),
            reason: "the API server did not answer at the end".to_owned(),
        });
    }
}

fn end(stage: &Stage, outcome: ScenarioOutcome, reason: Option<String>) {
    stage.log.write(Event::ScenarioEnd { outcome, reason });
}

/// Deletes what was made, puts back what was changed, and says what is left.
async fn tidy(stage: Arc<Stage>, home: Option<Namespace>, before: Option<Snapshot>) {
    let shared = &stage.shared;
    let mut leaked = Vec::new();
    let created = u64::from(home.is_some());
    if let Some(home) = &home {
        let limit = stage.limit(&Deadline::Class(Class::Delete));
        leaked = namespace::delete(&shared.wire, home, limit).await;
    }
    if let Some(before) = &before {
        let limit = stage.limit(&Deadline::Class(Class::Boot));
        if let Err(error) = restore::restore(&shared.wire, &shared.platform, before, limit).await {
            leaked.push(format!(
                "{} is not as it was: {error}",
                shared.platform.discovery.kind
            ));
        }
    }
    for line in &leaked {
        shared
            .listener
            .hear(News::Remark(format!("{}: left behind: {line}", stage.id())));
    }
    stage.log.write(Event::Cleanup { created, leaked });
}
