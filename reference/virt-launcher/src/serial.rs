//! The guest's serial port: bytes from the guest go to at most one console client and, line by line,
//! to standard output; bytes from the client go to the guest.
//!
//! The guest's side never waits. A client that does not read loses the oldest bytes, a standard output
//! that does not drain loses lines, and nothing is kept for a client that is not there.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::output::Printer;

pub(crate) mod console;
mod lines;
mod ring;

use lines::LineAssembler;
use ring::Ring;

/// Pieces of input that wait for the guest before the client is held back.
const INPUT_PIECES: usize = 16;

/// What a machine gets: where it puts the guest's bytes, and where it finds those for the guest.
pub(crate) struct SerialPort {
    pub(crate) output: GuestOutput,
    pub(crate) input: mpsc::Receiver<Bytes>,
}

/// What the console server gets.
#[derive(Clone)]
pub(crate) struct SerialHub {
    shared: Arc<Shared>,
    input: mpsc::Sender<Bytes>,
}

/// The guest's end; may be called from any thread.
#[derive(Clone)]
pub(crate) struct GuestOutput {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    client: Mutex<Option<Arc<Ring>>>,
    log: Mutex<Option<(LineAssembler, Printer)>>,
}

/// A port and its hub.
pub(crate) fn port() -> (SerialPort, SerialHub) {
    let shared = Arc::new(Shared::default());
    let (sender, input) = mpsc::channel(INPUT_PIECES);
    let output = GuestOutput {
        shared: Arc::clone(&shared),
    };
    (
        SerialPort { output, input },
        SerialHub {
            shared,
            input: sender,
        },
    )
}

impl GuestOutput {
    /// Takes what the guest wrote. Never blocks on a reader.
    pub(crate) fn write(&self, bytes: &[u8]) {
        if let Some(ring) = lock(&self.shared.client).as_ref() {
            ring.push(bytes);
        }
        if let Some((assembler, printer)) = lock(&self.shared.log).as_mut() {
            assembler.push(bytes, |line| printer.guest_line(line));
        }
    }
}

impl SerialHub {
    /// From now on the guest's lines are printed too.
    pub(crate) fn log_to(&self, printer: Printer) {
        *lock(&self.shared.log) = Some((LineAssembler::default(), printer));
    }

    /// The machine is gone: clients read what is left and are closed; an unfinished line is printed.
    pub(crate) fn close(&self) {
        if let Some(ring) = lock(&self.shared.client).take() {
            ring.close();
        }
        if let Some((mut assembler, printer)) = lock(&self.shared.log).take() {
            assembler.finish(|line| printer.guest_line(line));
        }
    }

    /// Takes over the guest's output from whoever had it.
    fn attach(&self) -> Arc<Ring> {
        let ring = Arc::new(Ring::default());
        *lock(&self.shared.client) = Some(Arc::clone(&ring));
        ring
    }
}

/// A panic elsewhere ends the process, so a poisoned lock is never seen in earnest.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
