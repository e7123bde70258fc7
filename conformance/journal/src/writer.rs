//! Puts lines down one at a time, each holding the hash of the one before, each flushed before anything else happens.

use std::{
    io::{self, Write},
    time::Instant,
};

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    entry::{Entry, Event},
    redact::redact,
};

/// What the first line holds in place of a hash.
pub(crate) const ORIGIN: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// A moment on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds since the run began.
    pub t: u64,
    /// Wall clock.
    pub wall: Timestamp,
}

/// The harness's clock. Monotonic time decides, wall time is for people.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    began: Instant,
}

impl Clock {
    /// Starts at 0 now.
    pub fn start() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// Nanoseconds since the start.
    pub fn t(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Now, on both clocks.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            t: self.t(),
            wall: Timestamp::now(),
        }
    }
}

/// A line that could not be put down.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The disk, most likely.
    #[error("failed to write the journal")]
    Io(#[from] io::Error),
    /// An entry that is not JSON.
    #[error("failed to turn a journal entry into JSON")]
    Json(#[from] serde_json::Error),
}

/// Writes one journal.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    run: String,
    next: u64,
    last_t: u64,
    previous: String,
}

impl<W: Write> Writer<W> {
    /// A new journal for this run.
    pub fn new(out: W, run: impl Into<String>) -> Self {
        Self {
            out,
            run: run.into(),
            next: 0,
            last_t: 0,
            previous: ORIGIN.to_owned(),
        }
    }

    /// Puts one line down and returns what it says, secrets taken out.
    ///
    /// Callers on several threads stamp before they take the lock; a stamp that comes late is moved up to the line
    /// before it, so that time never runs backwards in a journal.
    pub fn append(
        &mut self,
        at: Stamp,
        scenario: Option<&str>,
        event: Event,
    ) -> Result<Entry, WriteError> {
        let t = at.t.max(self.last_t);
        let entry = Entry {
            seq: self.next,
            t,
            wall: at.wall,
            run: self.run.clone(),
            scenario: scenario.map(str::to_owned),
            event,
        };
        let mut line = serde_json::to_value(&entry)?;
        redact(&mut line);
        if let Value::Object(fields) = &mut line {
            fields.insert("prev".to_owned(), Value::String(self.previous.clone()));
        }
        let mut text = serde_json::to_string(&line)?;
        let hash = line_hash(&text);
        text.push('\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.next += 1;
        self.last_t = t;
        self.previous = hash;
        Ok(serde_json::from_value(line)?)
    }

    /// The hash of the last line: names the whole journal.
    pub fn head(&self) -> &str {
        &self.previous
    }

    /// Gives the output back.
    pub fn into_inner(self) -> W {
        self.out
    }
}

pub(crate) fn line_hash(line: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(line.as_bytes())
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
