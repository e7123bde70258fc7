//! The only door to the launcher's standard output and error.
//!
//! One thread writes. Everybody else hands over lines and never waits: when the reader of our output
//! stalls, lines are lost and counted, and the guest runs on.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    thread,
    time::Duration,
};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait for a slow reader.
const BACKLOG: usize = 1024;

/// Hands lines to the writing thread.
#[derive(Clone)]
pub(crate) struct Printer {
    lines: SyncSender<Entry>,
    lost: Arc<AtomicU64>,
}

enum Entry {
    Guest(String),
    Talk(Vec<u8>),
    Flush(SyncSender<()>),
}

impl Printer {
    /// Starts the writing thread.
    pub(crate) fn start() -> io::Result<Self> {
        Self::to(io::stdout(), io::stderr())
    }

    fn to(
        guest: impl Write + Send + 'static,
        talk: impl Write + Send + 'static,
    ) -> io::Result<Self> {
        let (lines, entries) = sync_channel(BACKLOG);
        let lost = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&lost);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || write_all(entries, &counter, guest, talk))?;
        Ok(Self { lines, lost })
    }

    /// Prints one line of the guest's console to standard output.
    pub(crate) fn guest_line(&self, line: String) {
        self.enqueue(Entry::Guest(line));
    }

    /// Waits until everything before this call is written, but not for ever.
    pub(crate) fn flush(&self, patience: Duration) {
        let (done, wait) = sync_channel(1);
        if self.lines.try_send(Entry::Flush(done)).is_ok() {
            // Nothing can be done about a reader that is still stalled.
            let _ = wait.recv_timeout(patience);
        }
    }

    fn enqueue(&self, entry: Entry) {
        if let Err(TrySendError::Full(_)) = self.lines.try_send(entry) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The line a log line is written through; whole lines, one call each.
pub(crate) struct TalkWriter<'a>(&'a Printer);

impl Write for TalkWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.enqueue(Entry::Talk(bytes.to_vec()));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Printer {
    type Writer = TalkWriter<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        TalkWriter(self)
    }
}

/// A line to standard error past the queue, for a process that is about to die.
pub(crate) fn last_word(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

fn write_all(
    entries: Receiver<Entry>,
    lost: &AtomicU64,
    mut guest: impl Write,
    mut talk: impl Write,
) {
    for entry in entries {
        // A closed standard output is not worth dying for: the guest matters more than its log.
        let _ = match entry {
            Entry::Guest(line) => writeln!(guest, "{line}").and_then(|()| guest.flush()),
            Entry::Talk(bytes) => talk.write_all(&bytes),
            Entry::Flush(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        let count = lost.swap(0, Ordering::Relaxed);
        if count > 0 {
            let _ = writeln!(
                talk,
                "{count} lines were lost because nobody read the launcher's output"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    #[test]
    fn a_stalled_reader_costs_lines_and_never_the_writer() {
        let (guest_reader, guest) = pipe().unwrap();
        let (talk_reader, talk) = pipe().unwrap();
        let printer = Printer::to(guest, talk).unwrap();
        let (line, total) = ("x".repeat(4000), 4 * BACKLOG);

        for _ in 0..total {
            printer.guest_line(line.clone());
        }

        drop(printer);

        let drain = thread::spawn(move || BufReader::new(guest_reader).lines().count());
        let mut lost = 0;
        for message in BufReader::new(talk_reader).lines() {
            let message = message.unwrap();
            let count: usize = message.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(
                message,
                format!("{count} lines were lost because nobody read the launcher's output")
            );
            lost += count;
        }
        assert!(lost > BACKLOG);
        assert_eq!(drain.join().unwrap() + lost, total);
    }

    #[test]
    fn a_flush_waits_for_what_was_handed_over() {
        let (reader, guest) = pipe().unwrap();
        let printer = Printer::to(guest, io::sink()).unwrap();
        printer.guest_line("hello".to_owned());
        printer.flush(Duration::from_secs(10));
        let mut line = String::new();
        BufReader::new(reader).read_line(&mut line).unwrap();
        assert_eq!(line, "hello\n");
    }
}
