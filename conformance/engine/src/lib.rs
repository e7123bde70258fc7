//! Runs scenarios against a cluster and records what happens; it never judges.
//!
//! `run` orders scenarios, `play` takes one from its namespace to its last line, `step` holds the words. `watch`,
//! `console` and `wire` are the three ways in which the suite meets the cluster, all of them plain HTTP. Whatever is
//! seen goes through `log` into the journal before anything is decided on it.

mod barrier;
pub mod connect;
mod console;
mod evidence;
#[cfg(test)]
mod fake;
pub mod log;
mod machine;
pub mod manifest;
mod namespace;
pub mod play;
pub mod preflight;
pub mod progress;
mod recording;
mod restore;
mod retry;
pub mod run;
pub mod stage;
mod step;
pub mod watch;
pub mod wire;

pub use connect::{Target, connect};
pub use log::Recorder;
pub use play::{Cleanup, Manner};
pub use preflight::{Facts, NotReady};
pub use progress::{Listener, News};
pub use run::{Job, Settings, Summary, run};
pub use stage::Shared;
pub use wire::Wire;
