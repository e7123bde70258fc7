//! What the vCPU thread and everybody else share: requests in, events, counters and the ending out.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::clock;
use crate::console::Console;
use crate::event::{Ending, Event, Stamped};
use crate::machine::{EventSink, MachineStats, lock};
use crate::vcpu::Kicker;

/// A vCPU that was silent for this long is asked whether it is dead.
const SILENCE: Duration = Duration::from_secs(1);

/// What others want of the vCPU thread. Asking twice is asking once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) kill: bool,
    pub(crate) reset: bool,
    pub(crate) button: bool,
    /// Look whether the vCPU is halted for good.
    pub(crate) examine: bool,
    /// Not an order but a wish that stays: stand still until it is taken back.
    pub(crate) paused: bool,
}

#[derive(Debug, Default)]
struct State {
    requests: Requests,
    kicker: Option<Kicker>,
    ending: Option<Ending>,
}

/// The shared part of a machine.
pub(crate) struct Control {
    state: Mutex<State>,
    changed: Condvar,
    sink: EventSink,
    console: Console,
    boots: AtomicU32,
    exits: AtomicU64,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Control {
    pub(crate) fn new(sink: EventSink, console: Console, paused: bool) -> Self {
        let requests = Requests {
            paused,
            ..Requests::default()
        };
        Self {
            state: Mutex::new(State {
                requests,
                ..State::default()
            }),
            changed: Condvar::new(),
            sink,
            console,
            boots: AtomicU32::new(0),
            exits: AtomicU64::new(0),
        }
    }

    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    pub(crate) fn emit(&self, event: Event) {
        (self.sink)(Stamped {
            event,
            monotonic_ns: clock::monotonic_ns(),
        });
    }

    pub(crate) fn count_boot(&self) {
        self.boots.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_exit(&self) {
        self.exits.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self) -> MachineStats {
        MachineStats {
            boots: self.boots.load(Ordering::Relaxed),
            exits: self.exits.load(Ordering::Relaxed),
        }
    }

    /// Changes the requests and makes the vCPU thread look at them.
    pub(crate) fn request(&self, change: impl FnOnce(&mut Requests)) {
        let mut state = lock(&self.state);
        change(&mut state.requests);
        if let Some(kicker) = &state.kicker {
            kicker.kick();
        }
        self.changed.notify_all();
    }

    /// Makes the calling vCPU thread reachable, or unreachable again before it ends.
    pub(crate) fn set_kicker(&self, kicker: Option<Kicker>) {
        lock(&self.state).kicker = kicker;
    }

    /// Takes the orders that came since the last call. Kicks from here on are for later orders.
    pub(crate) fn take_requests(&self) -> Requests {
        let mut state = lock(&self.state);
        take(&mut state)
    }

    /// Waits until there is something to do other than standing still.
    pub(crate) fn take_requests_while_paused(&self) -> Requests {
        let mut state = lock(&self.state);
        while state.requests
            == (Requests {
                paused: true,
                examine: state.requests.examine,
                ..Requests::default()
            })
        {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        take(&mut state)
    }

    /// Records the end and tells everybody.
    pub(crate) fn end(&self, ending: Ending) {
        self.console.close();
        self.emit(Event::Ended {
            cause: ending.clone(),
        });
        lock(&self.state).ending = Some(ending);
        self.changed.notify_all();
    }

    pub(crate) fn ended(&self) -> Option<Ending> {
        lock(&self.state).ending.clone()
    }

    pub(crate) fn wait(&self) -> Ending {
        let mut state = lock(&self.state);
        loop {
            if let Some(ending) = &state.ending {
                return ending.clone();
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn take(state: &mut State) -> Requests {
    if let Some(kicker) = &state.kicker {
        kicker.clear();
    }
    let taken = state.requests;
    state.requests = Requests {
        paused: taken.paused,
        ..Requests::default()
    };
    taken
}

/// Body of the watchdog thread: a halted vCPU never comes back by itself, so a silent one is asked to examine itself.
pub(crate) fn watch_for_dead_halt(control: &Control) {
    let mut seen = control.stats().exits;
    loop {
        let state = lock(&control.state);
        let not_ended = |state: &mut State| state.ending.is_none();
        let waited = control
            .changed
            .wait_timeout_while(state, SILENCE, not_ended);
        let (state, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        if !timeout.timed_out() {
            return;
        }
        drop(state);
        let exits = control.stats().exits;
        if exits == seen {
            control.request(|requests| requests.examine = true);
        }
        seen = exits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Control {
        Control::new(Box::new(drop), Console::new(), true)
    }

    #[test]
    fn orders_are_taken_once_and_wishes_stay() {
        let control = control();
        control.request(|requests| requests.button = true);
        assert_eq!(
            control.take_requests(),
            Requests {
                button: true,
                paused: true,
                ..Requests::default()
            }
        );
        assert_eq!(
            control.take_requests(),
            Requests {
                paused: true,
                ..Requests::default()
            }
        );
    }

    #[test]
    fn a_paused_thread_wakes_for_an_order() {
        let control = control();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| control.take_requests_while_paused());
            control.request(|requests| requests.kill = true);
            assert!(waiting.join().expect("no panic").kill);
        });
    }

    #[test]
    fn everybody_who_waits_learns_the_ending() {
        let control = control();
        std::thread::scope(|scope| {
            let waiters = [
                scope.spawn(|| control.wait()),
                scope.spawn(|| control.wait()),
            ];
            control.end(Ending::PoweredOff);
            for waiter in waiters {
                assert_eq!(waiter.join().expect("no panic"), Ending::PoweredOff);
            }
        });
    }
}
