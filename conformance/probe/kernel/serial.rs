//! COM1 by polling: whole FIFOs out, single bytes in.

use core::fmt;

use crate::hardware::{in8, out8};

const BASE: u16 = 0x3f8;
const FIFO_CONTROL: u16 = BASE + 2;
const LINE_CONTROL: u16 = BASE + 3;
const LINE_STATUS: u16 = BASE + 5;
const DATA_READY: u8 = 1;
const TRANSMITTER_EMPTY: u8 = 1 << 5;
/// The chip takes so many bytes between two looks at its status.
const FIFO_BYTES: usize = 16;
/// An absent port reads as all ones, and would be "ready" for ever.
const ABSENT: u8 = 0xff;

/// The open port.
pub struct Serial;

impl Serial {
    /// Eight bits, FIFO on, nothing waiting.
    ///
    /// Switching the FIFO on throws away what was typed before. QEMU forgets to tell its other half
    /// then that there is room again, and hears nothing more until the data register is read.
    pub fn open() -> Self {
        out8(LINE_CONTROL, 3);
        out8(FIFO_CONTROL, 1);
        let _stale = in8(BASE);
        Self
    }

    /// Sends the pieces and a newline.
    pub fn line(&self, pieces: &[&[u8]]) {
        let newline: &[&[u8]] = &[b"\n"];
        let bytes = pieces.iter().chain(newline).flat_map(|piece| piece.iter());
        for (sent, byte) in bytes.enumerate() {
            if sent % FIFO_BYTES == 0 {
                while in8(LINE_STATUS) & TRANSMITTER_EMPTY == 0 {}
            }
            out8(BASE, *byte);
        }
    }

    /// Sends formatted text and a newline.
    pub fn formatted(&self, text: fmt::Arguments<'_>) {
        let mut line = Line {
            bytes: [0; 256],
            length: 0,
        };
        // What does not fit is cut; the probe's own lines are shorter.
        let _cut = fmt::write(&mut line, text);
        self.line(&[&line.bytes[..line.length]]);
    }

    /// The next byte, if one is there.
    pub fn read(&self) -> Option<u8> {
        let status = in8(LINE_STATUS);
        (status != ABSENT && status & DATA_READY != 0).then(|| in8(BASE))
    }
}

/// A line being formatted.
struct Line {
    bytes: [u8; 256],
    length: usize,
}

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.bytes.get_mut(self.length).ok_or(fmt::Error)? = byte;
            self.length += 1;
        }
        Ok(())
    }
}
