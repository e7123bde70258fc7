//! Carries out what the supervisor decides: one loop that owns the machine, the timer and the published
//! state. It waits for nothing but its inputs, so a slow machine never delays an answer.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;
use tokio::{
    sync::{broadcast, mpsc, oneshot},
    time::sleep,
};
use virt_cmd::{Domain, DomainState, state};

use crate::{
    files::{self, FilesError},
    machine::{Departure, Event, Machine, Order, OrderError},
    server,
    supervisor::{Command, Engine, Refusal, Supervisor},
};

mod launch;

pub(crate) use launch::Workshop;

/// Inputs that may wait for the loop.
pub(crate) const INPUT_BACKLOG: usize = 64;

/// Who waits for an order to be carried out.
pub(crate) type Reply = oneshot::Sender<Result<(), CommandError>>;

/// Everything that moves the loop.
pub(crate) enum Input {
    /// Start a machine. The answer tells whether it had been started before.
    Start {
        domain: Box<Domain>,
        reply: oneshot::Sender<Result<bool, StartRefusal>>,
    },
    /// An order of the handler, or of the pod's end (without a reply).
    Command {
        command: Command,
        reply: Option<Reply>,
    },
    /// The machine was made.
    Made(Box<dyn Machine>),
    /// Something happened to it.
    Machine(Event),
    /// It carried out an order. Travels with the events, so that the state is published before the answer.
    Carried {
        result: Result<(), OrderError>,
        reply: Reply,
    },
}

/// Where a machine reports.
#[derive(Clone)]
pub(crate) struct EventPort(mpsc::Sender<Input>);

impl EventPort {
    /// Waits only while the loop is behind. Once it has ended, nobody cares any more.
    pub(crate) async fn send(&self, event: Event) {
        let _ = self.0.send(Input::Machine(event)).await;
    }
}

/// Why nothing was started; the call may be repeated.
#[derive(Debug, Error)]
pub(crate) enum StartRefusal {
    #[error(transparent)]
    Files(#[from] FilesError),
}

/// Why an order had no effect.
#[derive(Debug, Error)]
pub(crate) enum CommandError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("failed to carry out the order")]
    Machine(#[from] OrderError),
}

/// The last state, and a stream of changes.
#[derive(Clone)]
pub(crate) struct StateBoard {
    shared: Arc<Mutex<(DomainState, broadcast::Sender<DomainState>)>>,
}

impl StateBoard {
    pub(crate) fn new(first: DomainState) -> Self {
        Self {
            shared: Arc::new(Mutex::new((first, server::changes()))),
        }
    }

    pub(crate) fn current(&self) -> DomainState {
        self.lock().0.clone()
    }

    /// The present state and everything after it, without a gap.
    pub(crate) fn subscribe(&self) -> (DomainState, broadcast::Receiver<DomainState>) {
        let shared = self.lock();
        (shared.0.clone(), shared.1.subscribe())
    }

    /// Ends every stream after the last change.
    pub(crate) fn close(&self) {
        self.lock().1 = server::changes();
    }

    fn publish(&self, state: DomainState) {
        let mut shared = self.lock();
        // Nobody watching is fine.
        let _ = shared.1.send(state.clone());
        shared.0 = state;
    }

    fn lock(&self) -> MutexGuard<'_, (DomainState, broadcast::Sender<DomainState>)> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The loop and what it owns.
pub(crate) struct Conductor {
    supervisor: Supervisor,
    workshop: Workshop,
    machine: Option<Box<dyn Machine>>,
    /// Orders that came before the machine.
    early: Vec<(Order, Option<Reply>)>,
    inputs: mpsc::Receiver<Input>,
    own: mpsc::Sender<Input>,
    board: StateBoard,
    state_file: PathBuf,
}

impl Conductor {
    pub(crate) fn new(
        supervisor: Supervisor,
        workshop: Workshop,
        (own, inputs): (mpsc::Sender<Input>, mpsc::Receiver<Input>),
        state_file: PathBuf,
    ) -> Self {
        let board = StateBoard::new(supervisor.state(now()));
        Self {
            supervisor,
            workshop,
            machine: None,
            early: Vec::new(),
            inputs,
            own,
            board,
            state_file,
        }
    }

    pub(crate) fn board(&self) -> StateBoard {
        self.board.clone()
    }

    /// Runs until the launcher may exit.
    pub(crate) async fn run(mut self) -> DomainState {
        self.save(&self.board.current());
        while !self.supervisor.is_finished() {
            let due = self
                .supervisor
                .deadline()
                .map(|deadline| deadline.saturating_sub(now()));
            tokio::select! {
                input = self.inputs.recv() => match input {
                    Some(input) => self.take(input).await,
                    // Impossible while we hold a sender ourselves.
                    None => break,
                },
                () = sleep(due.unwrap_or_default()), if due.is_some() => {
                    let order = self.supervisor.tick(now());
                    self.give(order, None);
                }
            }
            self.publish();
        }
        self.board.current()
    }

    async fn take(&mut self, input: Input) {
        match input {
            Input::Start { domain, reply } => {
                let answer = self.start(*domain);
                let _ = reply.send(answer);
            }
            Input::Command { command, reply } => match self.supervisor.command(now(), command) {
                Ok(order) => self.give(order, reply),
                Err(refusal) => answer(reply, Err(refusal.into())),
            },
            Input::Made(machine) => {
                self.machine = Some(machine);
                for (order, reply) in std::mem::take(&mut self.early) {
                    self.give(Some(order), reply);
                }
            }
            Input::Machine(event) => {
                let gone = matches!(event, Event::Gone(_));
                let order = self.supervisor.observe(now(), event);
                if gone {
                    self.machine = None;
                    self.early.clear();
                    self.workshop.close();
                }
                self.give(order, None);
            }
            Input::Carried { result, reply } => {
                // The state comes first: who has the answer finds it in the watch.
                self.publish();
                answer(Some(reply), result.map_err(CommandError::from));
            }
        }
    }

    fn start(&mut self, domain: Domain) -> Result<bool, StartRefusal> {
        if !self.supervisor.is_idle() {
            return Ok(true);
        }
        let found = files::find(&domain)?;
        match self.workshop.plan(domain, found) {
            Ok(plan) => {
                tracing::info!(
                    backend = plan.engine.backend,
                    machine = plan.engine.machine,
                    "starting the machine"
                );
                self.supervisor.begin(Engine::clone(&plan.engine));
                let make = self.workshop.make(plan, EventPort(self.own.clone()));
                tokio::spawn(deliver(make, self.own.clone()));
            }
            Err(reason) => {
                tracing::error!(%reason, "cannot start the machine");
                self.supervisor.cannot_begin(now(), reason.to_string());
            }
        }
        Ok(false)
    }

    /// Hands an order to the machine; the answer comes back as an input.
    fn give(&mut self, order: Option<Order>, reply: Option<Reply>) {
        let Some(order) = order else {
            return answer(reply, Ok(()));
        };
        let Some(machine) = self.machine.as_mut() else {
            return self.early.push((order, reply));
        };
        let carried = machine.order(order);
        let own = self.own.clone();
        tokio::spawn(async move {
            let result = carried.await;
            match (reply, result) {
                (Some(reply), result) => drop(own.send(Input::Carried { result, reply }).await),
                (None, Err(error)) => {
                    tracing::warn!(?order, %error, "the machine did not carry out an order")
                }
                (None, Ok(())) => {}
            }
        });
    }

    fn publish(&self) {
        let next = self.supervisor.state(now());
        let last = self.board.current();
        if (DomainState {
            monotonic_ns: last.monotonic_ns,
            ..next.clone()
        }) == last
        {
            return;
        }
        if next.phase != last.phase {
            tracing::info!(
                phase = next.phase().as_str_name(),
                ending = next.ending().as_str_name(),
                boots = next.boots,
                detail = next.detail,
                "the state changes"
            );
            // Boots alone are not worth a write: a guest can reset itself a thousand times per second.
            self.save(&next);
        }
        self.board.publish(next);
    }

    fn save(&self, state: &DomainState) {
        if let Err(error) = state::write(&self.state_file, state) {
            tracing::warn!(%error, "the state will not outlive the launcher");
        }
    }
}

/// The machine, or the reason why there is none, as an input.
async fn deliver(
    make: impl Future<Output = Result<Box<dyn Machine>, String>>,
    inputs: mpsc::Sender<Input>,
) {
    let input = match make.await {
        Ok(machine) => Input::Made(machine),
        Err(reason) => Input::Machine(Event::Gone(Departure::Failed(reason))),
    };
    // Without a loop there is no need for a machine.
    let _ = inputs.send(input).await;
}

fn answer(reply: Option<Reply>, result: Result<(), CommandError>) {
    if let Some(reply) = reply {
        // The caller may have hung up.
        let _ = reply.send(result);
    }
}

/// Reading of the clock that stamps the states.
pub(crate) fn now() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
