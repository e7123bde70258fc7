//! A bounded pipe between a writer that must not wait and a reader that may be slow.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use tokio::sync::Notify;

/// What a slow reader may have outstanding: the burst of a boot log fits.
const CAPACITY: usize = 64 * 1024;

/// Bytes in order; the oldest are lost when the reader does not keep up.
#[derive(Default)]
pub(super) struct Ring {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    bytes: VecDeque<u8>,
    closed: bool,
}

impl Ring {
    /// Adds bytes, making room at the old end.
    pub(super) fn push(&self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(CAPACITY)..];
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let excess = (state.bytes.len() + bytes.len()).saturating_sub(CAPACITY);
        state.bytes.drain(..excess);
        state.bytes.extend(bytes);
        drop(state);
        self.changed.notify_one();
    }

    /// No more bytes will come.
    pub(super) fn close(&self) {
        self.state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .closed = true;
        self.changed.notify_one();
    }

    /// Everything that is there, waiting for at least one byte; `None` when closed and drained.
    pub(super) async fn pop(&self) -> Option<Bytes> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if !state.bytes.is_empty() {
                    return Some(Bytes::from(Vec::from(std::mem::take(&mut state.bytes))));
                }
                if state.closed {
                    return None;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_come_out_in_order_and_end_with_the_ring() {
        let ring = Ring::default();
        ring.push(b"ab");
        ring.push(b"c");
        assert_eq!(ring.pop().await.unwrap(), "abc");
        ring.push(b"d");
        ring.close();
        assert_eq!(ring.pop().await.unwrap(), "d");
        assert_eq!(ring.pop().await, None);
    }

    #[tokio::test]
    async fn a_full_ring_loses_its_oldest_bytes() {
        let ring = Ring::default();
        ring.push(&vec![b'a'; CAPACITY]);
        ring.push(b"xyz");
        let bytes = ring.pop().await.unwrap();
        assert_eq!(bytes.len(), CAPACITY);
        assert!(bytes.ends_with(b"aaxyz"));

        ring.push(&[vec![b'b'; 10], vec![b'c'; CAPACITY]].concat());
        assert!(ring.pop().await.unwrap().iter().all(|byte| *byte == b'c'));
    }

    #[tokio::test]
    async fn a_waiting_reader_is_woken() {
        let ring = Ring::default();
        let (read, ()) = tokio::join!(ring.pop(), async { ring.push(b"x") });
        assert_eq!(read.unwrap(), "x");
    }
}
