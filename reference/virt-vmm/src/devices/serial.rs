//! COM1, a 16550 whose line ends in the [`Console`].
//!
//! Its interrupt is not wired (there is no I/O APIC yet): guests poll the line status.

use std::convert::Infallible;
use std::io::{self, Write};

use vm_superio::serial::NoEvents;
use vm_superio::{Serial, Trigger};

use crate::console::Console;
use crate::devices::Effect;

/// First of its ports.
pub(crate) const FIRST: u16 = 0x3f8;
/// Last of its ports.
pub(crate) const LAST: u16 = 0x3ff;

const TRANSMIT: u16 = 0;
const LINE_CONTROL: u16 = 3;
const DIVISOR_ACCESS: u8 = 1 << 7;

/// The port and what it has to know beyond the chip's registers.
pub(crate) struct SerialPort {
    chip: Serial<NoInterrupt, NoEvents, Line>,
    console: Console,
    divisor_access: bool,
    spoke: bool,
}

impl std::fmt::Debug for SerialPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SerialPort")
            .field("spoke", &self.spoke)
            .finish_non_exhaustive()
    }
}

impl SerialPort {
    pub(crate) fn new(console: Console) -> Self {
        let chip = Serial::new(NoInterrupt, Line(console.clone()));
        Self {
            chip,
            console,
            divisor_access: false,
            spoke: false,
        }
    }

    pub(crate) fn write(&mut self, offset: u16, value: u8) -> Effect {
        // The line takes everything, so the chip cannot fail.
        let _infallible = self.chip.write(offset.to_le_bytes()[0], value);
        match offset {
            LINE_CONTROL => self.divisor_access = value & DIVISOR_ACCESS != 0,
            TRANSMIT if !self.divisor_access && !self.spoke => {
                self.spoke = true;
                return Effect::FirstByte;
            }
            _ => {}
        }
        Effect::Nothing
    }

    pub(crate) fn read(&mut self, offset: u16) -> u8 {
        self.refill();
        self.chip.read(offset.to_le_bytes()[0])
    }

    /// Moves waiting input into the chip's FIFO as far as it has room.
    fn refill(&mut self) {
        let input = self.console.take_input(self.chip.fifo_capacity());
        if !input.is_empty() {
            let _infallible = self.chip.enqueue_raw_bytes(&input);
        }
    }
}

/// The wire: never blocks, never fails.
struct Line(Console);

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The interrupt pin, connected to nothing.
struct NoInterrupt;

impl Trigger for NoInterrupt {
    type E = Infallible;

    fn trigger(&self) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE_STATUS: u16 = 5;
    const DATA_READY: u8 = 1;

    #[test]
    fn input_waits_in_the_queue_and_comes_out_in_order() {
        let console = Console::new();
        let mut port = SerialPort::new(console.clone());
        assert_eq!(port.read(LINE_STATUS) & DATA_READY, 0);
        let long: Vec<u8> = (0..200).collect();
        assert_eq!(console.write(&long), 200);
        let mut heard = Vec::new();
        while port.read(LINE_STATUS) & DATA_READY != 0 {
            heard.push(port.read(0));
        }
        assert_eq!(heard, long);
    }

    #[test]
    fn a_divisor_is_not_speech() {
        let mut port = SerialPort::new(Console::new());
        port.write(LINE_CONTROL, DIVISOR_ACCESS);
        assert_eq!(port.write(0, 1), Effect::Nothing);
        port.write(LINE_CONTROL, 3);
        assert_eq!(port.write(0, b'R'), Effect::FirstByte);
        assert_eq!(port.write(0, b'E'), Effect::Nothing);
    }
}
