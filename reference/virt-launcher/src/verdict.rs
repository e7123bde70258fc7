//! What the launcher leaves behind: an exit code and a termination message that say how the guest ended.

use std::{fs, path::Path, process::ExitCode};

use serde::Serialize;
use virt_cmd::{DomainState, Ending, Phase};

/// The launcher itself could not work.
pub(crate) const EXIT_LAUNCHER_ERROR: u8 = 70;

/// The exit code for a final state.
pub(crate) fn exit_code(state: &DomainState) -> u8 {
    match (state.phase(), state.ending()) {
        (Phase::FailedToStart, _) => EXIT_LAUNCHER_ERROR,
        (_, Ending::PoweredOff | Ending::ShutdownForced) => 0,
        (_, Ending::Panicked) => 65,
        (_, Ending::Stuck) => 66,
        (_, Ending::Killed) => 137,
        (_, Ending::EngineError | Ending::NotEnded) => EXIT_LAUNCHER_ERROR,
    }
}

/// One JSON line for the pod's status.
pub(crate) fn termination_message(state: &DomainState) -> String {
    let message = Message {
        phase: state.phase().as_str_name(),
        ending: state.ending().as_str_name(),
        detail: &state.detail,
        backend: &state.backend,
        accelerator: &state.accelerator,
        boots: state.boots,
    };
    serde_json::to_string(&message).unwrap_or_default()
}

#[derive(Serialize)]
struct Message<'a> {
    phase: &'a str,
    ending: &'a str,
    detail: &'a str,
    backend: &'a str,
    accelerator: &'a str,
    boots: u32,
}

/// Leaves the message and gives the code.
pub(crate) fn leave(state: &DomainState, termination_log: &Path) -> ExitCode {
    let message = termination_message(state);
    if let Err(error) = fs::write(termination_log, format!("{message}\n")) {
        tracing::warn!(%error, path = %termination_log.display(), "failed to write the termination message");
    }
    let code = exit_code(state);
    tracing::info!(code, %message, "the launcher ends");
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn state(phase: Phase, ending: Ending) -> DomainState {
        DomainState {
            phase: phase.into(),
            ending: ending.into(),
            ..DomainState::default()
        }
    }

    #[rstest]
    #[case(Phase::Ended, Ending::PoweredOff, 0)]
    #[case(Phase::Ended, Ending::ShutdownForced, 0)]
    #[case(Phase::Ended, Ending::Panicked, 65)]
    #[case(Phase::Ended, Ending::Stuck, 66)]
    #[case(Phase::Ended, Ending::EngineError, 70)]
    #[case(Phase::Ended, Ending::Killed, 137)]
    #[case(Phase::FailedToStart, Ending::NotEnded, 70)]
    fn codes(#[case] phase: Phase, #[case] ending: Ending, #[case] code: u8) {
        assert_eq!(exit_code(&state(phase, ending)), code);
    }

    #[test]
    fn the_message_is_one_line_of_json() {
        let state = DomainState {
            detail: "the guest said \"no\"\nand left".to_owned(),
            backend: "vmm".to_owned(),
            accelerator: "kvm".to_owned(),
            boots: 2,
            ..state(Phase::Ended, Ending::Panicked)
        };
        assert_eq!(
            termination_message(&state),
            r#"{"phase":"ENDED","ending":"PANICKED","detail":"the guest said \"no\"\nand left","backend":"vmm","accelerator":"kvm","boots":2}"#
        );
    }
}
