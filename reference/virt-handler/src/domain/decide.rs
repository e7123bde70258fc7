//! What to do next for one VMI: a pure function of what the API server and the launcher say.
//! It looks at levels, not at changes, so a lost event or a restart of the handler cannot confuse it.

use kubevirt_api::v1::{VirtualMachineInstance, VirtualMachineInstancePhase as VmiPhase};
use virt_cmd::{DomainState, Ending, Phase};

/// Seconds that a guest gets to power off when the VMI does not say.
const DEFAULT_GRACE_SECONDS: u32 = 30;

/// What counts of the VMI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VmiFacts {
    /// Its phase.
    pub phase: VmiPhase,
    /// Somebody deleted it; it waits for its end.
    pub deleting: bool,
    /// The object does not exist any more.
    pub gone: bool,
    /// Seconds that the guest gets to power off.
    pub grace_seconds: u32,
    /// Whether the guest can hear the power button.
    pub acpi: bool,
}

impl VmiFacts {
    /// Reads them from the object.
    #[must_use]
    pub fn of(vmi: &VirtualMachineInstance, gone: bool) -> Self {
        let grace = vmi.spec.termination_grace_period_seconds;
        let acpi = vmi
            .spec
            .domain
            .features
            .as_ref()
            .and_then(|f| f.acpi.as_ref());
        Self {
            phase: vmi
                .status
                .as_ref()
                .and_then(|s| s.phase)
                .unwrap_or_default(),
            deleting: vmi.metadata.deletion_timestamp.is_some(),
            gone,
            grace_seconds: grace.map_or(DEFAULT_GRACE_SECONDS, |seconds| {
                u32::try_from(seconds.max(0)).unwrap_or(u32::MAX)
            }),
            acpi: acpi.is_none_or(|feature| feature.enabled.unwrap_or(true)),
        }
    }
}

/// What is known of the launcher.
#[derive(Clone, Debug, PartialEq)]
pub enum Launcher {
    /// Not heard of yet.
    Awaited,
    /// It answers, and this is its machine.
    Alive(DomainState),
    /// It is dead or never came; its last words, if it left any.
    Missing(Option<DomainState>),
}

/// What this session has done already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The launcher took the domain.
    pub started: bool,
    /// The shortest grace period that the launcher was told.
    pub shutdown_grace: Option<u32>,
    /// The launcher was told to end the machine at once.
    pub killed: bool,
    /// The launcher was told that its end is recorded.
    pub released: bool,
}

/// How a machine ended, for the VMI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The guest ended in an orderly way.
    pub success: bool,
    /// The guest said that it panicked.
    pub panicked: bool,
    /// Why it never ran.
    pub start_error: Option<String>,
}

/// What the VMI's status has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The launcher is there; the machine does not run yet.
    Preparing,
    /// The machine runs, or would if it were not paused.
    Up {
        /// Whether a user paused it.
        paused: bool,
    },
    /// The machine is over.
    Ended(End),
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Write the status, if it does not say so already.
    Record(Outcome),
    /// Hand the domain to the launcher.
    Start,
    /// Press the power button.
    Shutdown {
        /// After so many seconds the launcher kills the machine.
        grace_seconds: u32,
    },
    /// End the machine at once.
    Kill,
    /// Let the launcher go.
    Release,
    /// Nothing is left to do for this VMI, ever.
    Finish,
}

/// The next steps, in order; none when there is nothing to do but wait.
#[must_use]
pub fn decide(vmi: VmiFacts, launcher: &Launcher, done: Done) -> Vec<Action> {
    if vmi.gone || vmi.phase.is_final() {
        return wind_up(launcher, done);
    }
    match (vmi.phase, launcher) {
        (VmiPhase::Scheduled, Launcher::Awaited) => vec![Action::Record(Outcome::Preparing)],
        (VmiPhase::Scheduled | VmiPhase::Running, Launcher::Alive(machine)) => {
            follow(vmi, machine, done)
        }
        (VmiPhase::Scheduled | VmiPhase::Running, Launcher::Missing(last)) => {
            end(vmi, last.as_ref())
        }
        // Other phases belong to virt-controller.
        _ => Vec::new(),
    }
}

/// The VMI is over: so must the launcher be.
fn wind_up(launcher: &Launcher, done: Done) -> Vec<Action> {
    match launcher {
        Launcher::Awaited => Vec::new(),
        Launcher::Missing(_) => vec![Action::Finish],
        Launcher::Alive(_) if done.released => vec![Action::Finish],
        Launcher::Alive(machine) => match machine.phase() {
            Phase::Ended | Phase::FailedToStart => vec![Action::Release, Action::Finish],
            // A launcher without a machine has nothing to tell: it leaves at once.
            Phase::None => vec![Action::Kill, Action::Finish],
            _ if done.killed => Vec::new(),
            _ => vec![Action::Kill],
        },
    }
}

fn follow(vmi: VmiFacts, machine: &DomainState, done: Done) -> Vec<Action> {
    match machine.phase() {
        // A launcher that has forgotten its machine, or a VMI deleted before anything ran.
        Phase::None if vmi.phase == VmiPhase::Running || vmi.deleting => end(vmi, Some(machine)),
        Phase::None if done.started => vec![Action::Record(Outcome::Preparing)],
        Phase::None => vec![Action::Record(Outcome::Preparing), Action::Start],
        Phase::Starting => with_shutdown(vmi, done, vec![Action::Record(Outcome::Preparing)]),
        phase @ (Phase::Running | Phase::Paused | Phase::ShuttingDown) => {
            let paused = phase == Phase::Paused;
            with_shutdown(vmi, done, vec![Action::Record(Outcome::Up { paused })])
        }
        Phase::Ended | Phase::FailedToStart => end(vmi, Some(machine)),
    }
}

/// A deleted VMI's guest is asked to power off; again only when it gets less time than it was told.
fn with_shutdown(vmi: VmiFacts, done: Done, mut actions: Vec<Action>) -> Vec<Action> {
    let grace_seconds = vmi.grace_seconds;
    let sooner = done.shutdown_grace.is_none_or(|told| grace_seconds < told);
    if vmi.deleting && sooner {
        actions.push(Action::Shutdown { grace_seconds });
    }
    actions
}

/// Records the end. A machine that did run is first recorded as running, however short its life was.
fn end(vmi: VmiFacts, last: Option<&DomainState>) -> Vec<Action> {
    let ended = Action::Record(Outcome::Ended(verdict(vmi, last)));
    let ran = last.is_some_and(|machine| machine.phase() == Phase::Ended && machine.boots > 0);
    if ran && vmi.phase == VmiPhase::Scheduled {
        vec![Action::Record(Outcome::Up { paused: false }), ended]
    } else {
        vec![ended]
    }
}

fn verdict(vmi: VmiFacts, last: Option<&DomainState>) -> End {
    let ending = last.map_or(Ending::NotEnded, DomainState::ending);
    let at_once = vmi.deleting && vmi.grace_seconds == 0;
    let ran = last.is_some_and(|machine| machine.boots > 0);
    let success = ran
        && match ending {
            Ending::PoweredOff => true,
            // Only a guest that could hear the button and had time to obey is to blame.
            Ending::ShutdownForced => !vmi.acpi || vmi.grace_seconds == 0,
            Ending::Killed => at_once,
            Ending::NotEnded | Ending::Panicked | Ending::EngineError | Ending::Stuck => false,
        };
    let never_ran = last.filter(|machine| machine.phase() == Phase::FailedToStart);
    End {
        success,
        panicked: ending == Ending::Panicked,
        start_error: never_ran.map(|machine| machine.detail.clone()),
    }
}

#[cfg(test)]
#[path = "decide/tests.rs"]
mod tests;
