//! Stand-ins for the two neighbours, for tests only: a launcher behind a real socket, an API server behind a client.

mod api_server;
mod launcher;

pub(crate) use api_server::{FakeApi, merge};
pub(crate) use launcher::FakeLauncher;

use std::{future::Future, time::Duration};

/// Longer than any test needs; a test that gets here has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The future's output, or a failed test.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("did not happen: {what}"),
    }
}
