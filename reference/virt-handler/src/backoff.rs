//! Waiting between attempts: doubles up to a limit, and starts again after a success.

use std::time::Duration;

/// The pause before the next attempt.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Pauses from `first` up to `most`.
    #[must_use]
    pub fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            next: first,
        }
    }

    /// The pause that is due now; the one after it is twice as long.
    pub fn take(&mut self) -> Duration {
        let now = self.next;
        self.next = (now * 2).min(self.most);
        now
    }

    /// Waits for the pause that is due.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.take()).await;
    }

    /// Forgets the failures so far.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_stops_growing_and_starts_again() {
        let ms = Duration::from_millis;
        let mut backoff = Backoff::new(ms(100), ms(350));
        let taken: Vec<_> = (0..4).map(|_| backoff.take()).collect();
        assert_eq!(taken, [ms(100), ms(200), ms(350), ms(350)]);
        backoff.reset();
        assert_eq!(backoff.take(), ms(100));
    }
}
