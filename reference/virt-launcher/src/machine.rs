//! What every machine back end can be asked, and what it reports.
//!
//! A back end is started, takes orders, and sends events until exactly one [`Event::Gone`]. It decides
//! nothing: what an event means for the instance is the supervisor's business.

use futures::future::BoxFuture;
use thiserror::Error;

pub(crate) mod qemu;
pub(crate) mod vmm;

/// What a running machine can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Stop the processors. Answered when they stand still.
    Pause,
    /// Let them go on.
    Resume,
    /// Press the ACPI power button.
    PowerButton,
    /// Press the reset button.
    Reset,
    /// Start again after the guest has powered off.
    BootAgain,
    /// Give everything back in good order; the guest has ended.
    Dispose,
    /// End now, whatever the guest does.
    Kill,
}

/// What happens to a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It exists and its first boot begins, or would begin with the next resume.
    Started { paused: bool },
    /// The processors stand still.
    Paused,
    /// The processors go on.
    Resumed,
    /// The guest boots again in place.
    Rebooted,
    /// The guest switched itself off; the machine is kept until it is disposed of or booted again.
    PoweredOff,
    /// The guest reported a panic; the machine is kept until it is disposed of.
    Panicked,
    /// Something that people should know and that changes nothing.
    Note(String),
    /// Nothing of the machine is left. The last event.
    Gone(Departure),
}

/// How a machine went, apart from what its guest said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// As it was told.
    Disposed,
    /// Somebody killed it.
    Killed(String),
    /// It broke, or never came to be.
    Failed(String),
}

/// Why an order was not carried out.
#[derive(Debug, Error)]
pub(crate) enum OrderError {
    /// The machine ended before it could answer.
    #[error("the machine is gone")]
    Gone,
    /// It did not answer in time.
    #[error("the machine did not answer `{0}` in time")]
    Silent(&'static str),
    /// It refused.
    #[error("the machine refused `{command}`: {reason}")]
    Refused {
        command: &'static str,
        reason: String,
    },
}

/// An order under way; it resolves when the machine has carried it out.
pub(crate) type Carried = BoxFuture<'static, Result<(), OrderError>>;

/// One started machine.
pub(crate) trait Machine: Send {
    /// Hands over an order without waiting. Orders are carried out in the sequence in which they are given.
    fn order(&mut self, order: Order) -> Carried;
}
