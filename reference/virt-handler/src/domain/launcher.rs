//! Follows one launcher through its socket and keeps the latest that is known of it in a watch channel.
//! A launcher is dead when nobody listens at its socket any more; how its machine ended it left in a file.

use std::{io, time::Duration};

use futures::StreamExt as _;
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use tracing::{debug, warn};
use virt_cmd::{
    DomainState, client::Client, paths::LauncherPaths, proto::WatchRequest, socket, state,
};

use super::decide::Launcher;
use crate::{backoff::Backoff, dir_watch::DirWatch};

/// A socket that never appears is given up after this time, as in the original.
const SOCKET_GRACE: Duration = Duration::from_secs(180);
/// A launcher that never answered may be between making its socket and listening on it.
const REFUSALS: u32 = 6;

/// Follows the launcher until it is dead; `view` then says so and does not change again.
pub async fn follow(paths: LauncherPaths, mut client: Client, view: watch::Sender<Launcher>) {
    let deadline = Instant::now() + SOCKET_GRACE;
    let mut pause = Backoff::new(Duration::from_millis(10), Duration::from_secs(2));
    let mut answered = false;
    let mut refused = 0;
    loop {
        match reach(&paths).await {
            Reach::Listening => {
                refused = 0;
                if states(&mut client, &view).await {
                    answered = true;
                    pause.reset();
                }
            }
            Reach::Absent if Instant::now() < deadline && last_words(&paths).is_none() => {
                socket_appears(&paths, deadline).await;
            }
            Reach::Refused if !answered && refused < REFUSALS => refused += 1,
            Reach::Unclear(error) => {
                warn!(socket = %paths.command_socket().display(), %error, "failed to reach a launcher");
            }
            Reach::Absent | Reach::Refused | Reach::PodGone => {
                view.send_replace(Launcher::Missing(last_words(&paths)));
                return;
            }
        }
        pause.wait().await;
    }
}

/// What one attempt to connect says.
enum Reach {
    Listening,
    /// The directory is there, the socket is not.
    Absent,
    Refused,
    PodGone,
    Unclear(io::Error),
}

async fn reach(paths: &LauncherPaths) -> Reach {
    let socket = paths.command_socket();
    match socket::connect(&socket).await {
        Ok(_) => Reach::Listening,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound if socket.parent().is_some_and(|dir| dir.is_dir()) => {
                Reach::Absent
            }
            io::ErrorKind::NotFound => Reach::PodGone,
            io::ErrorKind::ConnectionRefused => Reach::Refused,
            _ => Reach::Unclear(error),
        },
    }
}

/// Passes on every state until the stream breaks; tells whether there was any.
async fn states(client: &mut Client, view: &watch::Sender<Launcher>) -> bool {
    let mut stream = match client.watch(WatchRequest {}).await {
        Ok(response) => response.into_inner(),
        Err(status) => {
            debug!(%status, "a launcher does not let itself be watched");
            return false;
        }
    };
    let mut any = false;
    while let Some(next) = stream.next().await {
        match next {
            Ok(state) => {
                any = true;
                view.send_replace(Launcher::Alive(state));
            }
            Err(status) => {
                debug!(%status, "a launcher's states broke off");
                break;
            }
        }
    }
    any
}

async fn socket_appears(paths: &LauncherPaths, deadline: Instant) {
    let socket = paths.command_socket();
    let Some(Ok(mut changes)) = socket.parent().map(DirWatch::new) else {
        return;
    };
    if !socket.exists() {
        // Whatever happened, the caller looks again.
        drop(timeout_at(deadline, changes.next()).await);
    }
}

fn last_words(paths: &LauncherPaths) -> Option<DomainState> {
    state::read(&paths.state_file()).unwrap_or_else(|error| {
        warn!(%error, "the last state of a launcher is lost");
        None
    })
}
