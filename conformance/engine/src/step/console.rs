//! `console`: says something to the guest, hears something from it, or sees the session ended.

use std::time::Duration;

use conformance_scenario::model::{Step, step::Console};

use crate::{
    barrier,
    console::{ConsoleError, socket::OpenError},
    stage::Stage,
    step::Went,
};

/// Time between two tries of a client that insists.
const AGAIN: Duration = Duration::from_secs(3);

pub(super) async fn run(stage: &Stage, step: &Step, talk: &Console) -> Went {
    let limit = stage.limit(&talk.within);
    stage.waiting(
        format!("{}: console of {} ({})", step.id, talk.vmi, talk.client),
        Some(limit),
    );
    if let Err(error) = stage.consoles.ensure(&talk.vmi, &talk.client, limit).await {
        return refusal(error);
    }
    if let Some(text) = &talk.send
        && let Err(error) = stage.consoles.send(&talk.client, text).await
    {
        return Went::Unexpected(error.to_string());
    }
    match &talk.send {
        Some(text) if talk.insist => tokio::select! {
            went = barrier::pass(stage, step, limit) => went,
            error = say_again(stage, talk, text) => Went::Unexpected(error.to_string()),
        },
        _ => barrier::pass(stage, step, limit).await,
    }
}

/// Says it again and again; returns only when that fails.
async fn say_again(stage: &Stage, talk: &Console, text: &str) -> ConsoleError {
    let mut ticks = tokio::time::interval(AGAIN);
    ticks.tick().await;
    loop {
        ticks.tick().await;
        if let Err(error) = stage.consoles.send(&talk.client, text).await {
            return error;
        }
    }
}

/// A refusal is the platform's word; a server that cannot be reached is nobody's.
fn refusal(error: ConsoleError) -> Went {
    match &error {
        ConsoleError::Open {
            source: OpenError::Call(cause),
            ..
        } => Went::Broken(format!("{error}: {}", cause.text())),
        ConsoleError::Open { source, .. } => Went::Unexpected(format!("{error}: {source}")),
        ConsoleError::Slow { .. } => Went::TooLate(error.to_string()),
        ConsoleError::Closed(_) => Went::Unexpected(error.to_string()),
    }
}
