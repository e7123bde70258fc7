//! Pause, unpause, soft reboot, reset: one order to the launcher, and the event that tells of it.
//! Success is 200 without a body; a wrong state is 409, an unknown machine 404, anything else 500.

use axum::{
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
};
use tonic::{Code, Status};
use virt_cmd::{client::Client, proto::Empty};
use virt_kit::events::EventType;

use super::{ServerState, not_here};

/// An order that virt-api may pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Pause,
    Unpause,
    SoftReboot,
    Reset,
}

impl Verb {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "pause" => Some(Self::Pause),
            "unpause" => Some(Self::Unpause),
            "softreboot" => Some(Self::SoftReboot),
            "reset" => Some(Self::Reset),
            _ => None,
        }
    }

    /// Reason and message of the event after success.
    fn event(self) -> (&'static str, &'static str) {
        match self {
            Self::Pause => ("Paused", "VirtualMachineInstance paused"),
            Self::Unpause => ("Unpaused", "VirtualMachineInstance unpaused"),
            Self::SoftReboot => ("SoftRebooted", "VirtualMachineInstance soft rebooted"),
            Self::Reset => ("Reset", "VirtualMachineInstance reset"),
        }
    }

    async fn order(self, mut launcher: Client) -> Result<(), Status> {
        let answer = match self {
            Self::Pause => launcher.pause(Empty {}).await,
            Self::Unpause => launcher.resume(Empty {}).await,
            Self::SoftReboot => launcher.soft_reboot(Empty {}).await,
            Self::Reset => launcher.reset(Empty {}).await,
        };
        answer.map(drop)
    }
}

/// `PUT …/{verb}`.
pub(super) async fn call(
    State(state): State<ServerState>,
    Path((namespace, name, verb)): Path<(String, String, String)>,
) -> Response {
    let Some(verb) = Verb::parse(&verb) else {
        return (StatusCode::NOT_FOUND, "404: Page Not Found").into_response();
    };
    let Some(machine) = state.registry.find(&namespace, &name) else {
        return not_here(&namespace, &name);
    };
    match verb.order(machine.client.clone()).await {
        Ok(()) => {
            if let Some(recorder) = &state.recorder {
                let (reason, message) = verb.event();
                recorder
                    .publish(&machine.vmi, EventType::Normal, reason, message)
                    .await;
            }
            StatusCode::OK.into_response()
        }
        Err(status) => (http_code(status.code()), status.message().to_owned()).into_response(),
    }
}

fn http_code(code: Code) -> StatusCode {
    match code {
        Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
