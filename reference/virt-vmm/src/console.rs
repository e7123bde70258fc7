//! The serial console as seen from outside: a bounded ring for what the guest says, a bounded queue for what it hears.
//!
//! The guest's side never blocks: when nobody reads, the oldest bytes are dropped and each reader learns how many it
//! missed. A reader sees what is written after it was opened, never the past.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

/// Bytes of guest output kept for a slow reader.
const OUTPUT_BYTES: usize = 256 << 10;
/// Bytes of input kept for a guest that does not listen.
const INPUT_BYTES: usize = 64 << 10;

/// A handle on the machine's serial port; clones are the same port.
#[derive(Debug, Clone)]
pub struct Console {
    shared: Arc<Shared>,
}

/// What one call of [`ConsoleReader::read`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    /// Bytes put into the buffer.
    pub length: usize,
    /// Bytes that the guest wrote before these and that were dropped because this reader was too slow.
    pub lost: u64,
    /// The machine is gone and everything has been read.
    pub closed: bool,
}

/// One reader of the guest's output, from the moment it was made.
#[derive(Debug)]
pub struct ConsoleReader {
    shared: Arc<Shared>,
    signal: Arc<Signal>,
    position: u64,
}

#[derive(Debug, Default)]
struct Shared {
    output: Mutex<Output>,
    input: Mutex<VecDeque<u8>>,
}

#[derive(Debug, Default)]
struct Output {
    ring: VecDeque<u8>,
    /// Absolute position just after the last byte of the ring.
    end: u64,
    closed: bool,
    readers: Vec<Weak<Signal>>,
}

/// An eventfd that is readable while its reader has something to fetch.
#[derive(Debug)]
struct Signal {
    fd: OwnedFd,
    /// Whether the descriptor is readable; only changed under the output's lock. Spares a system call a byte.
    raised: AtomicBool,
}

impl Console {
    pub(crate) fn new() -> Self {
        Self {
            shared: Arc::default(),
        }
    }

    /// Queues bytes for the guest and returns how many were taken; the rest has to be offered again later.
    pub fn write(&self, bytes: &[u8]) -> usize {
        let mut input = lock(&self.shared.input);
        let taken = bytes.len().min(INPUT_BYTES.saturating_sub(input.len()));
        input.extend(bytes.iter().take(taken));
        taken
    }

    /// Opens a reader of everything that the guest writes from now on.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn reader(&self) -> std::io::Result<ConsoleReader> {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let signal = Arc::new(Signal {
            fd,
            raised: AtomicBool::new(false),
        });
        let mut output = lock(&self.shared.output);
        output.readers.push(Arc::downgrade(&signal));
        if output.closed {
            signal.raise();
        }
        Ok(ConsoleReader {
            shared: Arc::clone(&self.shared),
            signal,
            position: output.end,
        })
    }

    /// Takes a guest's byte.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut output = lock(&self.shared.output);
        let kept = &bytes[bytes.len().saturating_sub(OUTPUT_BYTES)..];
        let overflow = (output.ring.len() + kept.len()).saturating_sub(OUTPUT_BYTES);
        output.ring.drain(..overflow);
        output.ring.extend(kept);
        output.end += bytes.len() as u64;
        output.wake();
    }

    /// Gives the guest up to `limit` bytes of input.
    pub(crate) fn take_input(&self, limit: usize) -> Vec<u8> {
        let mut input = lock(&self.shared.input);
        let taken = limit.min(input.len());
        input.drain(..taken).collect()
    }

    /// Tells the readers that no byte will come any more.
    pub(crate) fn close(&self) {
        let mut output = lock(&self.shared.output);
        output.closed = true;
        output.wake();
    }
}

impl Output {
    /// Raises every living reader's signal; the eventfd's counter makes repeats harmless.
    fn wake(&mut self) {
        self.readers
            .retain(|reader| reader.upgrade().inspect(|signal| signal.raise()).is_some());
    }
}

impl Signal {
    fn raise(&self) {
        if !self.raised.swap(true, Ordering::Relaxed) {
            // Fails only when the counter is full, and then the descriptor is readable already.
            let _full = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }

    fn clear(&self) {
        if self.raised.swap(false, Ordering::Relaxed) {
            // Fails only when the counter is zero, which is what is wanted.
            let _empty = rustix::io::read(&self.fd, &mut [0u8; 8]);
        }
    }
}

impl ConsoleReader {
    /// Copies what is there without waiting; `length` 0 means nothing yet, or the end when `closed`.
    pub fn read(&mut self, buffer: &mut [u8]) -> Chunk {
        let output = lock(&self.shared.output);
        let oldest = output.end - output.ring.len() as u64;
        let lost = oldest.saturating_sub(self.position);
        let start = self.position.max(oldest);
        let skip = usize::try_from(start - oldest).unwrap_or(usize::MAX);
        let mut length = 0;
        for (slot, byte) in buffer.iter_mut().zip(output.ring.iter().skip(skip)) {
            *slot = *byte;
            length += 1;
        }
        self.position = start + length as u64;
        let drained = self.position == output.end;
        if drained && !output.closed {
            self.signal.clear();
        }
        Chunk {
            length,
            lost,
            closed: output.closed && drained && length == 0,
        }
    }
}

impl AsFd for ConsoleReader {
    /// Readable (poll, epoll) while there is something to read or the console is closed; never read it yourself.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.signal.fd.as_fd()
    }
}

impl std::os::fd::AsRawFd for ConsoleReader {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.signal.fd.as_fd().as_raw_fd()
    }
}

/// The data behind these locks is whole after every statement, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn readable(reader: &ConsoleReader) -> bool {
        let mut fds = [PollFd::new(reader, PollFlags::IN)];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut fds, Some(&at_once)).expect("poll") == 1
    }

    fn read_all(reader: &mut ConsoleReader) -> (Vec<u8>, u64) {
        let mut buffer = [0u8; 1000];
        let (mut bytes, mut lost) = (Vec::new(), 0);
        loop {
            let chunk = reader.read(&mut buffer);
            lost += chunk.lost;
            bytes.extend_from_slice(&buffer[..chunk.length]);
            if chunk.length == 0 {
                return (bytes, lost);
            }
        }
    }

    #[test]
    fn a_reader_sees_only_what_comes_after_it() {
        let console = Console::new();
        console.push(b"past");
        let mut reader = console.reader().expect("reader");
        assert!(!readable(&reader));
        console.push(b"now");
        assert!(readable(&reader));
        assert_eq!(read_all(&mut reader), (b"now".to_vec(), 0));
        assert!(!readable(&reader));
    }

    #[test]
    fn nobody_reading_drops_the_oldest_and_counts_them() {
        let console = Console::new();
        let mut reader = console.reader().expect("reader");
        for byte in 0..OUTPUT_BYTES + 10 {
            console.push(&[u8::try_from(byte % 251).expect("below 251")]);
        }
        let (bytes, lost) = read_all(&mut reader);
        assert_eq!((bytes.len(), lost), (OUTPUT_BYTES, 10));
        assert_eq!(bytes[0], 10);
    }

    #[test]
    fn input_is_bounded_and_in_order() {
        let console = Console::new();
        assert_eq!(console.write(b"abc"), 3);
        assert_eq!(console.write(&vec![b'x'; INPUT_BYTES]), INPUT_BYTES - 3);
        assert_eq!(console.write(b"no room"), 0);
        assert_eq!(console.take_input(4), b"abcx");
        assert_eq!(console.write(b"now there is"), 4);
    }

    #[test]
    fn closing_wakes_and_ends_readers_after_the_last_byte() {
        let console = Console::new();
        let mut reader = console.reader().expect("reader");
        console.push(b"bye");
        console.close();
        let mut buffer = [0u8; 8];
        assert_eq!(
            reader.read(&mut buffer),
            Chunk {
                length: 3,
                lost: 0,
                closed: false
            }
        );
        assert!(readable(&reader));
        assert_eq!(
            reader.read(&mut buffer),
            Chunk {
                length: 0,
                lost: 0,
                closed: true
            }
        );
        assert!(readable(&console.reader().expect("late reader")));
    }
}
