//! What a run tells while it goes on. Terminal and log are readers; the engine knows neither.

use std::time::Duration;

use conformance_judge::Status;
use conformance_scenario::ScenarioId;

/// One piece of news.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// A scenario begins.
    Started {
        /// Which.
        id: ScenarioId,
    },
    /// A step begins, or the wait for the assertions after the last one.
    Waiting {
        /// Which scenario.
        id: ScenarioId,
        /// What for, in a few words.
        what: String,
        /// For how long at most.
        limit: Option<Duration>,
    },
    /// A scenario is over; its objects are being deleted.
    Finished {
        /// Which.
        id: ScenarioId,
        /// What the judge says so far. The verdict is made from the whole journal later.
        status: Status,
        /// How long it took.
        took: Duration,
    },
    /// Something that an operator should read.
    Remark(String),
}

/// Takes the news. Must not block.
pub trait Listener: Send + Sync {
    /// Something happened.
    fn hear(&self, news: News);
}

/// Nobody listens.
pub struct Silence;

impl Listener for Silence {
    fn hear(&self, _: News) {}
}
