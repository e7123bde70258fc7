//! What is left of the keyboard controller: no keyboard, but its pulse command still resets the machine.

use crate::devices::Effect;
use crate::event::ResetCause;

/// Data port.
pub(crate) const DATA: u16 = 0x60;
/// Status (read) and command (write) port.
pub(crate) const COMMAND: u16 = 0x64;
/// Status of a controller with empty buffers, so that a guest that waits for it goes on.
pub(crate) const IDLE: u8 = 0;

const PULSE_RESET_LINE: u8 = 0xfe;

pub(crate) fn command(value: u8) -> Effect {
    if value == PULSE_RESET_LINE {
        Effect::Reset(ResetCause::Keyboard)
    } else {
        Effect::Nothing
    }
}
