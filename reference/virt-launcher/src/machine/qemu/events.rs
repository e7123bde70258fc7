//! What QEMU's events and its exit status mean for a machine.

use serde_json::Value;

use super::qmp::QmpEvent;
use crate::{
    machine::{Departure, Event},
    reaper::Exit,
};

/// Signals by which people and systems end a process; any other is QEMU's own fault.
const KILLING_SIGNALS: [i32; 4] = [1, 2, 9, 15];

/// The machine's event behind a QMP event, if it is one.
pub(super) fn event_of(event: &QmpEvent) -> Option<Event> {
    let word = |key: &str| event.data.get(key).and_then(Value::as_str);
    match event.name.as_str() {
        "STOP" => Some(Event::Paused),
        "RESUME" => Some(Event::Resumed),
        // Every reset, ours or the guest's own, begins another boot.
        "RESET" => Some(Event::Rebooted),
        "SHUTDOWN" if word("reason") == Some("guest-shutdown") => Some(Event::PoweredOff),
        "SHUTDOWN" if word("reason") == Some("guest-panic") => Some(Event::Panicked),
        "GUEST_PANICKED" => Some(Event::Panicked),
        "BLOCK_IO_ERROR" => Some(Event::Note(format!(
            "a disk failed: {} {}: {}",
            word("operation").unwrap_or("access"),
            word("node-name").unwrap_or_default(),
            word("reason").unwrap_or("unknown reason"),
        ))),
        _ => None,
    }
}

/// How the process went. `dismissed`: we had told it to go.
pub(super) fn departure(exit: Exit, dismissed: bool, last_words: &str) -> Departure {
    let because = if last_words.is_empty() {
        String::new()
    } else {
        format!(": {last_words}")
    };
    match exit {
        Exit::Code(0) if dismissed => Departure::Disposed,
        Exit::Code(0) => {
            Departure::Killed("the QEMU process was told to end from outside".to_owned())
        }
        Exit::Code(code) => Departure::Failed(format!("QEMU ended with status {code}{because}")),
        Exit::Signal(signal) if dismissed && signal == 9 => Departure::Disposed,
        Exit::Signal(signal) if KILLING_SIGNALS.contains(&signal) => {
            Departure::Killed(format!("the QEMU process was killed by signal {signal}"))
        }
        Exit::Signal(signal) => Departure::Failed(format!("QEMU died of signal {signal}{because}")),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("STOP", json!({}), Some(Event::Paused))]
    #[case("RESUME", json!({}), Some(Event::Resumed))]
    #[case("RESET", json!({"guest": true, "reason": "guest-reset"}), Some(Event::Rebooted))]
    #[case("RESET", json!({"guest": false, "reason": "host-qmp-system-reset"}), Some(Event::Rebooted))]
    #[case("SHUTDOWN", json!({"guest": true, "reason": "guest-shutdown"}), Some(Event::PoweredOff))]
    #[case("SHUTDOWN", json!({"guest": true, "reason": "guest-panic"}), Some(Event::Panicked))]
    #[case("SHUTDOWN", json!({"guest": false, "reason": "host-qmp-quit"}), None)]
    #[case("SHUTDOWN", json!({"guest": false, "reason": "host-signal"}), None)]
    #[case("GUEST_PANICKED", json!({"action": "pause"}), Some(Event::Panicked))]
    #[case("POWERDOWN", json!({}), None)]
    #[case(
        "BLOCK_IO_ERROR",
        json!({"operation": "write", "node-name": "root", "reason": "No space left on device"}),
        Some(Event::Note("a disk failed: write root: No space left on device".to_owned()))
    )]
    fn events(#[case] name: &str, #[case] data: Value, #[case] expected: Option<Event>) {
        assert_eq!(
            event_of(&QmpEvent {
                name: name.to_owned(),
                data
            }),
            expected
        );
    }

    #[rstest]
    #[case::as_told(Exit::Code(0), true, Departure::Disposed)]
    #[case::killed_by_us(Exit::Signal(9), true, Departure::Disposed)]
    #[case::killed(Exit::Signal(9), false, Departure::Killed("the QEMU process was killed by signal 9".to_owned()))]
    #[case::terminated(Exit::Signal(15), false, Departure::Killed("the QEMU process was killed by signal 15".to_owned()))]
    #[case::left(Exit::Code(0), false, Departure::Killed("the QEMU process was told to end from outside".to_owned()))]
    #[case::refused(Exit::Code(1), false, Departure::Failed("QEMU ended with status 1: why".to_owned()))]
    #[case::crashed(Exit::Signal(11), false, Departure::Failed("QEMU died of signal 11: why".to_owned()))]
    #[case::crashed_while_leaving(Exit::Signal(6), true, Departure::Failed("QEMU died of signal 6: why".to_owned()))]
    fn departures(#[case] exit: Exit, #[case] dismissed: bool, #[case] expected: Departure) {
        assert_eq!(departure(exit, dismissed, "why"), expected);
    }
}
