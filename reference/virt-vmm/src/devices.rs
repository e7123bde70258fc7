//! The port devices of a machine, and what a guest's access to them means for the machine.
//!
//! All of this is plain data: a write returns an [`Effect`], and the vCPU loop carries it out. A port that no device
//! owns reads as all ones and swallows writes, as on a PC. One access may carry several bytes: a wide access to a
//! register block, or a string instruction that repeats on one 8-bit register.

pub(crate) mod cf9;
pub(crate) mod debug_exit;
pub(crate) mod i8042;
pub(crate) mod panic;
pub(crate) mod pm;
pub(crate) mod serial;

use crate::console::Console;
use crate::devices::cf9::Cf9;
use crate::devices::panic::PanicDevice;
use crate::devices::pm::PowerManagement;
use crate::devices::serial::SerialPort;
use crate::event::ResetCause;

/// What the machine has to do after a guest's write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Nothing,
    /// Tell that the guest spoke for the first time since it booted.
    FirstByte,
    /// Boot again.
    Reset(ResetCause),
    /// End: the guest switched itself off.
    PowerOff,
    /// End: the guest said that it panicked.
    Panic,
    /// End: the guest used the debug-exit port.
    DebugExit(u8),
}

/// Which optional devices a machine has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) panic: bool,
    pub(crate) debug_exit: bool,
}

/// All port devices in their power-on state.
#[derive(Debug)]
pub(crate) struct Ports {
    serial: SerialPort,
    power: PowerManagement,
    cf9: Cf9,
    options: Options,
}

impl Ports {
    pub(crate) fn new(console: Console, options: Options) -> Self {
        Self {
            serial: SerialPort::new(console),
            power: PowerManagement::default(),
            cf9: Cf9::default(),
            options,
        }
    }

    /// Presses the power button.
    pub(crate) fn press_button(&mut self) {
        self.power.press_button();
    }

    /// A guest's `out`.
    pub(crate) fn write(&mut self, port: u16, data: &[u8]) -> Effect {
        match port {
            serial::FIRST..=serial::LAST => {
                each(data, |byte| self.serial.write(port - serial::FIRST, byte))
            }
            i8042::COMMAND => each(data, i8042::command),
            cf9::PORT if data.len() == 1 => each(data, |byte| self.cf9.write(byte)),
            pm::FIRST..=pm::LAST => self.power.write(port - pm::FIRST, data),
            panic::PORT if self.options.panic => each(data, PanicDevice::write),
            debug_exit::PORT if self.options.debug_exit => each(data, debug_exit::write),
            _ => Effect::Nothing,
        }
    }

    /// A guest's `in`.
    pub(crate) fn read(&mut self, port: u16, data: &mut [u8]) {
        match port {
            serial::FIRST..=serial::LAST => {
                data.fill_with(|| self.serial.read(port - serial::FIRST));
            }
            i8042::DATA | i8042::COMMAND => data.fill(i8042::IDLE),
            cf9::PORT if data.len() == 1 => data.fill(self.cf9.read()),
            pm::FIRST..=pm::LAST => self.power.read(port - pm::FIRST, data),
            panic::PORT if self.options.panic => data.fill(PanicDevice::SUPPORTED),
            _ => data.fill(0xff),
        }
    }
}

/// Gives the bytes to one register until one of them means something to the machine.
fn each(data: &[u8], mut write: impl FnMut(u8) -> Effect) -> Effect {
    let mut found = Effect::Nothing;
    for byte in data {
        match (write(*byte), found) {
            (Effect::Nothing, _) => {}
            (Effect::FirstByte, _) => found = Effect::FirstByte,
            (decisive, _) => return decisive,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn ports(panic: bool, debug_exit: bool) -> Ports {
        Ports::new(Console::new(), Options { panic, debug_exit })
    }

    #[rstest]
    #[case::keyboard(0x64, &[0xfe], Effect::Reset(ResetCause::Keyboard))]
    #[case::keyboard_other_command(0x64, &[0xd1], Effect::Nothing)]
    #[case::cf9(0xcf9, &[0x06], Effect::Reset(ResetCause::Cf9))]
    #[case::cf9_prepare(0xcf9, &[0x02], Effect::Nothing)]
    #[case::pci_address_is_not_cf9(0xcf8, &[0, 6, 0, 0x80], Effect::Nothing)]
    #[case::power_off(0x604, &[0x00, 0x34], Effect::PowerOff)]
    #[case::power_off_high_byte(0x605, &[0x34], Effect::PowerOff)]
    #[case::other_sleep_state(0x604, &[0x00, 0x24], Effect::Nothing)]
    #[case::first_byte(0x3f8, b"R", Effect::FirstByte)]
    #[case::string_output(0x3f8, b"READY", Effect::FirstByte)]
    #[case::panic(0x505, &[1], Effect::Panic)]
    #[case::crash_kernel_loaded(0x505, &[2], Effect::Nothing)]
    #[case::debug_exit(0xf4, &[7], Effect::DebugExit(7))]
    #[case::nobody(0x80, &[1], Effect::Nothing)]
    fn a_write_means(#[case] port: u16, #[case] data: &[u8], #[case] expected: Effect) {
        assert_eq!(ports(true, true).write(port, data), expected);
    }

    #[rstest]
    #[case(0x505, &[1])]
    #[case(0xf4, &[7])]
    fn absent_options_do_nothing(#[case] port: u16, #[case] data: &[u8]) {
        let mut ports = ports(false, false);
        assert_eq!(ports.write(port, data), Effect::Nothing);
        let mut byte = [0];
        ports.read(port, &mut byte);
        assert_eq!(byte, [0xff]);
    }

    #[test]
    fn the_button_is_seen_by_polling_and_cleared_by_writing_one() {
        let mut ports = ports(false, false);
        let mut status = [0; 2];
        ports.read(0x600, &mut status);
        assert_eq!(u16::from_le_bytes(status), 0);
        ports.press_button();
        ports.read(0x600, &mut status);
        assert_eq!(u16::from_le_bytes(status), 1 << 8);
        ports.write(0x600, &(1u16 << 8).to_le_bytes());
        ports.read(0x600, &mut status);
        assert_eq!(u16::from_le_bytes(status), 0);
    }

    proptest! {
        /// Whatever a guest does to ports, the devices answer and stay bounded.
        #[test]
        fn hostile_accesses_never_panic(accesses in proptest::collection::vec(
            (prop_oneof![0x3f0u16..0x400, 0x60u16..0x66, 0x5fcu16..0x60a, 0xcf8u16..0xcfa, any::<u16>()],
             proptest::collection::vec(any::<u8>(), 0..9), any::<bool>()), 0..200)) {
            let mut ports = ports(true, true);
            for (port, mut data, read) in accesses {
                if read {
                    ports.read(port, &mut data);
                } else {
                    ports.write(port, &data);
                }
            }
        }
    }
}
