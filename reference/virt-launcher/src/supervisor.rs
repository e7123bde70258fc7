//! What happens to the instance, as a pure state machine: orders from the handler, events from the
//! machine and the passing of time go in; orders to the machine and the published state come out.
//!
//! The first cause wins: once the guest has powered off, panicked or been condemned, nothing that the
//! dying machine still says changes the verdict.

use std::time::Duration;

use thiserror::Error;
use virt_cmd::{DomainState, Ending, Phase};

use crate::machine::{Departure, Event, Order};

#[cfg(test)]
mod tests;

/// How long an ended launcher waits for the handler to record the end.
pub(crate) const RELEASE_WAIT: Duration = Duration::from_secs(10);
/// How long a machine may take to disappear once it must.
pub(crate) const DISPOSAL_WAIT: Duration = Duration::from_secs(10);
/// A power-off that comes later than this after a soft reboot was asked for is the guest's own wish.
pub(crate) const SOFT_REBOOT_WAIT: Duration = Duration::from_secs(60);

/// What the outside can ask. Starting is a call of its own: [`Supervisor::begin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Pause,
    Resume,
    Shutdown { grace: Duration },
    Reset,
    SoftReboot,
    Kill,
    Release,
}

/// A command that does not fit the present phase.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the machine is {actual}, expected {expected}")]
pub(crate) struct Refusal {
    actual: &'static str,
    expected: &'static str,
}

/// How the machine is built, for the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Engine {
    pub(crate) backend: &'static str,
    pub(crate) accelerator: &'static str,
    pub(crate) machine: String,
}

/// The state of one instance. Times are readings of one monotonic clock.
#[derive(Clone, Debug)]
pub(crate) struct Supervisor {
    vmi_uid: String,
    life: Life,
    engine: Engine,
    boots: u32,
    note: String,
    paused: bool,
    /// A shutdown was asked for; the grace period as it was first given.
    closing: Option<Duration>,
    verdict: Option<Verdict>,
    soft_reboot_until: Option<Duration>,
    booting_again: bool,
    deadline: Option<Duration>,
    finished: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Idle,
    Starting,
    Alive,
    Ended,
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Verdict {
    ending: Ending,
    detail: String,
}

impl Verdict {
    fn new(ending: Ending, detail: impl Into<String>) -> Self {
        Self {
            ending,
            detail: detail.into(),
        }
    }
}

impl Supervisor {
    pub(crate) fn new(vmi_uid: String) -> Self {
        Self {
            vmi_uid,
            life: Life::Idle,
            engine: Engine::default(),
            boots: 0,
            note: String::new(),
            paused: false,
            closing: None,
            verdict: None,
            soft_reboot_until: None,
            booting_again: false,
            deadline: None,
            finished: false,
        }
    }

    /// Nothing has been started yet, and nothing forbids it.
    pub(crate) fn is_idle(&self) -> bool {
        self.life == Life::Idle
    }

    /// A machine is being made.
    pub(crate) fn begin(&mut self, engine: Engine) {
        self.life = Life::Starting;
        self.engine = engine;
    }

    /// No machine can be made on this host.
    pub(crate) fn cannot_begin(&mut self, now: Duration, reason: String) {
        self.life = Life::Failed;
        self.note = reason;
        self.deadline = Some(now + RELEASE_WAIT);
    }

    /// What the machine must do about a command.
    pub(crate) fn command(
        &mut self,
        now: Duration,
        command: Command,
    ) -> Result<Option<Order>, Refusal> {
        match command {
            Command::Pause if self.is_undisturbed() && !self.paused => Ok(Some(Order::Pause)),
            Command::Pause => Err(self.refuse("running")),
            Command::Resume if self.is_alive() && self.paused => Ok(Some(Order::Resume)),
            Command::Resume => Err(self.refuse("paused")),
            Command::Reset if self.is_undisturbed() => Ok(Some(Order::Reset)),
            Command::Reset => Err(self.refuse("running or paused")),
            Command::SoftReboot if self.is_undisturbed() && !self.paused => {
                self.soft_reboot_until = Some(now + SOFT_REBOOT_WAIT);
                Ok(Some(Order::PowerButton))
            }
            Command::SoftReboot => Err(self.refuse("running")),
            Command::Shutdown { grace } => Ok(self.shut_down(now, grace)),
            Command::Kill => {
                Ok(self.condemn_from_outside(now, Verdict::new(Ending::Killed, "killed by order")))
            }
            Command::Release if matches!(self.life, Life::Ended | Life::Failed) => {
                self.finished = true;
                Ok(None)
            }
            Command::Release => Err(self.refuse("ended")),
        }
    }

    /// What the machine must do about its own event.
    pub(crate) fn observe(&mut self, now: Duration, event: Event) -> Option<Order> {
        match event {
            Event::Started { paused } if self.life == Life::Starting => {
                self.life = Life::Alive;
                self.boots = 1;
                self.paused = paused;
                (self.closing.is_some() && self.verdict.is_none()).then_some(Order::PowerButton)
            }
            Event::Gone(departure) => {
                self.depart(now, departure);
                None
            }
            event if self.is_alive() => self.observe_living(now, event),
            _ => None,
        }
    }

    /// What the machine must do now that the [deadline](Self::deadline) has passed.
    pub(crate) fn tick(&mut self, now: Duration) -> Option<Order> {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return None;
        }
        self.deadline = None;
        match (self.life, &self.verdict, self.closing) {
            (Life::Ended | Life::Failed, ..) => {
                self.finished = true;
                None
            }
            (_, Some(_), _) => {
                self.depart(
                    now,
                    Departure::Failed("the machine could not be stopped".to_owned()),
                );
                None
            }
            (_, None, Some(grace)) => {
                let detail = format!("the guest did not power off within {} s", grace.as_secs());
                Some(self.condemn(
                    now,
                    Verdict::new(Ending::ShutdownForced, detail),
                    Order::Kill,
                ))
            }
            (_, None, None) => None,
        }
    }

    /// When [`tick`](Self::tick) has something to do.
    pub(crate) fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    /// The launcher may exit.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// What the handler sees.
    pub(crate) fn state(&self, now: Duration) -> DomainState {
        let ended = self.life == Life::Ended;
        let verdict = self.verdict.as_ref().filter(|_| ended);
        DomainState {
            vmi_uid: self.vmi_uid.clone(),
            phase: self.phase().into(),
            ending: verdict
                .map_or(Ending::NotEnded, |verdict| verdict.ending)
                .into(),
            detail: verdict.map_or_else(|| self.note.clone(), |verdict| verdict.detail.clone()),
            backend: self.engine.backend.to_owned(),
            accelerator: self.engine.accelerator.to_owned(),
            boots: self.boots,
            monotonic_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            machine: self.engine.machine.clone(),
        }
    }

    fn phase(&self) -> Phase {
        match self.life {
            Life::Idle => Phase::None,
            Life::Starting => Phase::Starting,
            Life::Alive if self.closing.is_some() => Phase::ShuttingDown,
            Life::Alive if self.paused => Phase::Paused,
            Life::Alive => Phase::Running,
            Life::Ended => Phase::Ended,
            Life::Failed => Phase::FailedToStart,
        }
    }

    /// The guest lives and its end has not been decided.
    fn is_alive(&self) -> bool {
        self.life == Life::Alive && self.verdict.is_none()
    }

    /// As above, and nobody wants it to end.
    fn is_undisturbed(&self) -> bool {
        self.is_alive() && self.closing.is_none()
    }

    fn refuse(&self, expected: &'static str) -> Refusal {
        let actual = match self.phase() {
            Phase::None => "not started",
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Paused => "paused",
            Phase::ShuttingDown => "shutting down",
            Phase::Ended => "ended",
            Phase::FailedToStart => "failed to start",
        };
        Refusal { actual, expected }
    }

    /// A repeated request presses the button again and can only shorten the grace period.
    fn shut_down(&mut self, now: Duration, grace: Duration) -> Option<Order> {
        if grace.is_zero() {
            let verdict = Verdict::new(Ending::ShutdownForced, "forced off without a grace period");
            return self.condemn_from_outside(now, verdict);
        }
        match self.life {
            Life::Idle => {
                self.end_unstarted();
                None
            }
            Life::Starting | Life::Alive if self.verdict.is_none() => {
                self.soft_reboot_until = None;
                let wanted = now + grace;
                if self.deadline.is_none_or(|deadline| wanted < deadline) {
                    self.deadline = Some(wanted);
                    self.closing = Some(grace);
                }
                (self.life == Life::Alive).then_some(Order::PowerButton)
            }
            _ => None,
        }
    }

    fn condemn_from_outside(&mut self, now: Duration, verdict: Verdict) -> Option<Order> {
        match self.life {
            Life::Idle => {
                self.end_unstarted();
                None
            }
            Life::Starting | Life::Alive if self.verdict.is_none() => {
                Some(self.condemn(now, verdict, Order::Kill))
            }
            _ => None,
        }
    }

    /// Nobody waits for the end of what never began.
    fn end_unstarted(&mut self) {
        self.life = Life::Ended;
        self.verdict = Some(Verdict::new(
            Ending::ShutdownForced,
            "asked to end before a machine was started",
        ));
        self.finished = true;
    }

    fn condemn(&mut self, now: Duration, verdict: Verdict, order: Order) -> Order {
        self.verdict = Some(verdict);
        self.deadline = Some(now + DISPOSAL_WAIT);
        order
    }

    fn observe_living(&mut self, now: Duration, event: Event) -> Option<Order> {
        match event {
            Event::Paused => self.paused = !self.booting_again,
            Event::Resumed => {
                self.paused = false;
                self.booting_again = false;
            }
            Event::Rebooted => {
                self.boots = self.boots.saturating_add(1);
                self.soft_reboot_until = None;
                self.note.clear();
            }
            Event::PoweredOff if self.soft_reboot_until.is_some_and(|until| now <= until) => {
                self.soft_reboot_until = None;
                self.booting_again = true;
                return Some(Order::BootAgain);
            }
            Event::PoweredOff => {
                let verdict = Verdict::new(Ending::PoweredOff, "the guest powered off");
                return Some(self.condemn(now, verdict, Order::Dispose));
            }
            Event::Panicked => {
                let verdict = Verdict::new(Ending::Panicked, "the guest panicked");
                return Some(self.condemn(now, verdict, Order::Dispose));
            }
            Event::Note(text) => self.note = text,
            Event::Started { .. } | Event::Gone(_) => {}
        }
        None
    }

    fn depart(&mut self, now: Duration, departure: Departure) {
        if !matches!(self.life, Life::Starting | Life::Alive) {
            return;
        }
        self.deadline = Some(now + RELEASE_WAIT);
        let own = match departure {
            Departure::Killed(detail) => Verdict::new(Ending::Killed, detail),
            Departure::Failed(detail) => Verdict::new(Ending::EngineError, detail),
            Departure::Disposed => {
                Verdict::new(Ending::EngineError, "the machine ended without a reason")
            }
        };
        if self.life == Life::Starting && self.verdict.is_none() {
            self.life = Life::Failed;
            self.note = own.detail;
        } else {
            self.life = Life::Ended;
            self.verdict.get_or_insert(own);
        }
    }
}
