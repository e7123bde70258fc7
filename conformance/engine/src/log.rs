//! The one door to the journal. A scenario's own lines are kept in memory too: barriers look at them and the
//! referee judges them while the run goes on, so that nothing is decided on what is not written down.

use std::{
    io::Write,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock},
};

use conformance_journal::{Clock, Entry, Event, Stamp, Writer};
use tokio::sync::watch;

/// Writes the journal of a run.
pub struct Recorder {
    writer: Mutex<Writer<Box<dyn Write + Send>>>,
    clock: Clock,
    calls: Mutex<u64>,
    failure: OnceLock<String>,
}

/// The part of the journal that belongs to one scenario.
pub struct Log {
    recorder: Arc<Recorder>,
    scenario: String,
    entries: RwLock<Vec<Entry>>,
    length: watch::Sender<usize>,
}

impl Recorder {
    /// Starts a journal.
    pub fn new(out: Box<dyn Write + Send>, run: &str) -> Arc<Self> {
        Arc::new(Self {
            writer: Mutex::new(Writer::new(out, run)),
            clock: Clock::start(),
            calls: Mutex::new(0),
            failure: OnceLock::new(),
        })
    }

    /// The clock that stamps every line.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Writes a line that belongs to no scenario.
    pub fn write(&self, event: Event) {
        self.append(self.clock.stamp(), None, event);
    }

    /// Why the journal is not whole, if it is not.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    fn append(&self, at: Stamp, scenario: Option<&str>, event: Event) -> Option<Entry> {
        match lock(&self.writer).append(at, scenario, event) {
            Ok(entry) => Some(entry),
            Err(error) => {
                // The first failure is the one that explains the others.
                let _ = self.failure.set(error.to_string());
                None
            }
        }
    }

    fn next_call(&self) -> u64 {
        let mut calls = lock(&self.calls);
        *calls += 1;
        *calls
    }
}

impl Log {
    /// The log of a scenario, empty so far.
    pub fn new(recorder: Arc<Recorder>, scenario: &str) -> Arc<Self> {
        Arc::new(Self {
            recorder,
            scenario: scenario.to_owned(),
            entries: RwLock::new(Vec::new()),
            length: watch::Sender::new(0),
        })
    }

    /// The clock that stamps every line.
    pub fn clock(&self) -> Clock {
        self.recorder.clock
    }

    /// Writes a line now.
    pub fn write(&self, event: Event) {
        self.write_at(self.recorder.clock.stamp(), event);
    }

    /// Writes a line about something that was seen at an earlier moment.
    pub fn write_at(&self, at: Stamp, event: Event) {
        // Lines of one scenario come from several tasks: memory and file must agree on their order.
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = self.recorder.append(at, Some(&self.scenario), event) {
            entries.push(entry);
            self.length.send_replace(entries.len());
        }
    }

    /// A number that joins a request with its response.
    pub fn next_call(&self) -> u64 {
        self.recorder.next_call()
    }

    /// Looks at the lines so far.
    pub fn read<T>(&self, look: impl FnOnce(&[Entry]) -> T) -> T {
        look(&self.entries.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells when lines are added.
    pub fn growth(&self) -> watch::Receiver<usize> {
        self.length.subscribe()
    }

    /// Why the journal is not whole, if it is not.
    pub fn failure(&self) -> Option<&str> {
        self.recorder.failure()
    }
}

/// A panic in another task leaves the data readable; losing evidence as well would help nobody.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io;

    use conformance_journal::Journal;

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("no space"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn memory_and_file_hold_the_same_lines() {
        let file = Shared::default();
        let recorder = Recorder::new(Box::new(file.clone()), "r");
        let log = Log::new(recorder.clone(), "VM-LIFE-0001");
        let growth = log.growth();
        let end = |number| Event::Try {
            step: "s1".into(),
            number,
            reason: String::new(),
        };
        log.write(end(1));
        log.write(end(2));
        recorder.write(Event::RunEnd { scenarios: 1 });
        assert_eq!(*growth.borrow(), 2);
        let text = String::from_utf8(file.0.lock().unwrap().clone()).unwrap();
        let journal = Journal::parse(&text).unwrap();
        let in_file: Vec<Entry> = journal
            .entries
            .iter()
            .filter(|entry| entry.scenario.is_some())
            .cloned()
            .collect();
        assert_eq!(in_file, log.read(<[Entry]>::to_vec));
        assert_eq!(journal.entries.len(), 3);
    }

    #[test]
    fn a_full_disk_is_remembered() {
        let recorder = Recorder::new(Box::new(Full), "r");
        assert_eq!(recorder.failure(), None);
        recorder.write(Event::RunEnd { scenarios: 0 });
        assert!(recorder.failure().is_some());
    }
}
