//! Bounded retries: every loop against the API server ends.

use std::{future::Future, time::Duration};

/// Waits that double from `min` to `max`, `steps` in all.
pub fn backoff(min: Duration, max: Duration, steps: u32) -> impl Iterator<Item = Duration> {
    (0..steps).map(move |step| {
        min.saturating_mul(2_u32.saturating_pow(step.min(16)))
            .min(max)
    })
}

/// Whether the server said that somebody else wrote first.
#[must_use]
pub fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether the server said that there is no such object.
#[must_use]
pub fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Runs `attempt` again, at most five times in all, while it meets conflicts.
pub async fn on_conflict<T, F, Fut>(mut attempt: F) -> Result<T, kube::Error>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, kube::Error>>,
{
    for wait in backoff(Duration::from_millis(10), Duration::from_millis(200), 4) {
        match attempt().await {
            Err(error) if is_conflict(&error) => tokio::time::sleep(wait).await,
            other => return other,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use kube::core::Status;

    use super::*;

    fn conflict() -> kube::Error {
        kube::Error::Api(Box::new(Status::failure("busy", "Conflict").with_code(409)))
    }

    #[test]
    fn backoff_doubles_up_to_its_limit() {
        let waits: Vec<u128> = backoff(Duration::from_millis(10), Duration::from_millis(50), 5)
            .map(|d| d.as_millis())
            .collect();
        assert_eq!(waits, [10, 20, 40, 50, 50]);
    }

    #[tokio::test]
    async fn conflicts_are_retried_but_not_for_ever() {
        let tries = Cell::new(0);
        let result: Result<(), _> = on_conflict(|| {
            tries.set(tries.get() + 1);
            async { Err(conflict()) }
        })
        .await;
        assert!(is_conflict(&result.unwrap_err()));
        assert_eq!(tries.get(), 5);
    }

    #[tokio::test]
    async fn other_errors_come_back_at_once() {
        let tries = Cell::new(0);
        let result: Result<(), _> = on_conflict(|| {
            tries.set(tries.get() + 1);
            async {
                Err(kube::Error::Api(Box::new(
                    Status::failure("gone", "NotFound").with_code(404),
                )))
            }
        })
        .await;
        assert!(is_not_found(&result.unwrap_err()));
        assert_eq!(tries.get(), 1);
    }
}
