//! A whole run: scenarios side by side, those that change the cluster alone and last.

use std::{
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
};

use conformance_journal::{Event, entry::ScenarioOutcome};
use conformance_judge::Status;
use conformance_scenario::{Scenario, library::Loaded, model::Exclusive};
use futures::StreamExt as _;
use tokio::{sync::Mutex, task::JoinHandle};

use crate::{
    log::Recorder,
    play::{Manner, Played, leave_out, play},
    progress::News,
    stage::Shared,
};

/// One scenario of a run.
#[derive(Debug, Clone)]
pub struct Job {
    /// The scenario.
    pub loaded: Arc<Loaded<Scenario>>,
    /// Why it is not to be played, when it is not.
    pub left_out: Option<(ScenarioOutcome, String)>,
}

/// How a run is done.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How many scenarios at once.
    pub jobs: NonZeroUsize,
    /// After so many failures no further scenario is begun.
    pub fail_fast: Option<NonZeroUsize>,
    /// How each is played.
    pub manner: Manner,
}

/// What a run came to, as far as the engine knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Scenarios that were played.
    pub played: u64,
    /// The operator ended it.
    pub interrupted: bool,
}

/// Plays all jobs. The journal has its beginning already; this writes its end.
pub async fn run(
    shared: Shared,
    recorder: Arc<Recorder>,
    jobs: Vec<Job>,
    settings: Settings,
) -> Summary {
    let total = u64::try_from(jobs.len()).unwrap_or(u64::MAX);
    let (alone, together): (Vec<Job>, Vec<Job>) = jobs
        .into_iter()
        .partition(|job| job.loaded.value.spec.exclusive != Exclusive::None);
    let troupe = Troupe {
        shared,
        recorder,
        settings,
        failures: AtomicUsize::new(0),
        played: AtomicU64::new(0),
        cleanups: Mutex::default(),
    };
    let width = troupe.settings.jobs.get();
    futures::stream::iter(together)
        .for_each_concurrent(width, |job| troupe.take(job))
        .await;
    troupe.all_clean().await;
    for job in alone {
        troupe.take(job).await;
        troupe.all_clean().await;
    }
    let interrupted = troupe.shared.stop.is_cancelled();
    if !interrupted {
        troupe.recorder.write(Event::RunEnd { scenarios: total });
    }
    Summary {
        played: troupe.played.into_inner(),
        interrupted,
    }
}

struct Troupe {
    shared: Shared,
    recorder: Arc<Recorder>,
    settings: Settings,
    failures: AtomicUsize,
    played: AtomicU64,
    cleanups: Mutex<Vec<JoinHandle<()>>>,
}

impl Troupe {
    async fn take(&self, job: Job) {
        if self.shared.stop.is_cancelled() {
            return;
        }
        if let Some((outcome, reason)) = job.left_out.or_else(|| self.enough()) {
            leave_out(&self.shared, &job.loaded, &self.recorder, outcome, reason);
            return;
        }
        self.played.fetch_add(1, Ordering::Relaxed);
        let playing = play(
            self.shared.clone(),
            job.loaded.clone(),
            self.recorder.clone(),
            self.settings.manner.clone(),
        );
        match tokio::spawn(playing).await {
            Ok(Played { status, cleanup }) => {
                if !matches!(status, Status::Pass | Status::ExpectedFail) {
                    self.failures.fetch_add(1, Ordering::Relaxed);
                }
                self.cleanups.lock().await.push(cleanup);
            }
            // Without a `scenario.end` the judge calls it interrupted; the operator should know that it was us.
            Err(error) => {
                let id = job.loaded.value.id();
                self.shared
                    .listener
                    .hear(News::Remark(format!("{id}: the harness broke: {error}")));
            }
        }
    }

    fn enough(&self) -> Option<(ScenarioOutcome, String)> {
        let limit = self.settings.fail_fast?.get();
        let failures = self.failures.load(Ordering::Relaxed);
        (failures >= limit).then(|| {
            (
                ScenarioOutcome::Skipped,
                format!("not begun after {failures} failure(s)"),
            )
        })
    }

    async fn all_clean(&self) {
        let cleanups = std::mem::take(&mut *self.cleanups.lock().await);
        for cleanup in cleanups {
            if let Err(error) = cleanup.await {
                self.shared
                    .listener
                    .hear(News::Remark(format!("a clean-up broke: {error}")));
            }
        }
    }
}
