//! ACPI power management: the fixed event block with its power button, and the control block with S5.

use crate::devices::Effect;

/// First port of the block.
pub(crate) const FIRST: u16 = EVENT_PORT;
/// Last port of the block.
pub(crate) const LAST: u16 = CONTROL_PORT + 1;
/// PM1a event block: status word, enable word.
pub(crate) const EVENT_PORT: u16 = 0x600;
/// Its length.
pub(crate) const EVENT_BYTES: u8 = 4;
/// PM1a control block.
pub(crate) const CONTROL_PORT: u16 = 0x604;
/// Its length.
pub(crate) const CONTROL_BYTES: u8 = 2;
/// The sleep type of S5, as the DSDT tells guests.
pub(crate) const SLEEP_TYPE_OFF: u8 = 5;

const BYTES: usize = 6;
const STATUS: std::ops::Range<usize> = 0..2;
const CONTROL_LOW: usize = 4;
const CONTROL_HIGH: usize = 5;
/// Bit 8 of the status word.
const BUTTON_IN_HIGH_BYTE: u8 = 1;
/// The machine is always in ACPI mode.
const SCI_ENABLED: u8 = 1;
const SLEEP_ENABLE: u8 = 1 << 5;

/// The registers, byte by byte, since guests access them in any width.
#[derive(Debug)]
pub(crate) struct PowerManagement {
    registers: [u8; BYTES],
}

impl Default for PowerManagement {
    fn default() -> Self {
        let mut registers = [0; BYTES];
        registers[CONTROL_LOW] = SCI_ENABLED;
        Self { registers }
    }
}

impl PowerManagement {
    /// Latches the button until the guest acknowledges it.
    pub(crate) fn press_button(&mut self) {
        self.registers[1] |= BUTTON_IN_HIGH_BYTE;
    }

    pub(crate) fn read(&self, offset: u16, data: &mut [u8]) {
        let registers = self
            .registers
            .iter()
            .skip(usize::from(offset))
            .chain(std::iter::repeat(&0xff));
        for (slot, register) in data.iter_mut().zip(registers) {
            *slot = *register;
        }
    }

    pub(crate) fn write(&mut self, offset: u16, data: &[u8]) -> Effect {
        let mut effect = Effect::Nothing;
        for (register, value) in (usize::from(offset)..BYTES).zip(data) {
            match register {
                _ if STATUS.contains(&register) => self.registers[register] &= !value,
                CONTROL_LOW => self.registers[CONTROL_LOW] = value | SCI_ENABLED,
                CONTROL_HIGH => {
                    // The enable bit reads as zero.
                    self.registers[CONTROL_HIGH] = value & !SLEEP_ENABLE;
                    if value & SLEEP_ENABLE != 0 && (value >> 2) & 7 == SLEEP_TYPE_OFF {
                        effect = Effect::PowerOff;
                    }
                }
                _ => self.registers[register] = *value,
            }
        }
        effect
    }
}
