//! Pauses between tries: short at first, longer each time, never longer than a limit.

use std::time::Duration;

/// A growing pause.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    limit: Duration,
    next: Duration,
}

impl Backoff {
    /// From `first`, doubling, up to `limit`.
    pub fn new(first: Duration, limit: Duration) -> Self {
        Self {
            first,
            limit,
            next: first,
        }
    }

    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next pause.
    pub fn step(&mut self) -> Duration {
        let pause = self.next;
        self.next = (self.next * 2).min(self.limit);
        pause
    }

    /// Waits for the next pause: there is no event that tells when a server is back.
    pub async fn pause(&mut self) {
        let pause = self.step();
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_up_to_the_limit_and_starts_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(300));
        let steps: Vec<_> = (0..4).map(|_| backoff.step().as_millis()).collect();
        assert_eq!(steps, [100, 200, 300, 300]);
        backoff.reset();
        assert_eq!(backoff.step().as_millis(), 100);
    }
}
