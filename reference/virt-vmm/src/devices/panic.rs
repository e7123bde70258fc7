//! The pvpanic device: a guest kernel's last word.

use crate::devices::Effect;

/// Its usual port.
pub(crate) const PORT: u16 = 0x505;

/// The device keeps no state.
pub(crate) struct PanicDevice;

impl PanicDevice {
    /// Events that the guest may report: panicked, and crash kernel loaded.
    pub(crate) const SUPPORTED: u8 = PANICKED | CRASH_LOADED;

    pub(crate) fn write(value: u8) -> Effect {
        if value & PANICKED != 0 {
            Effect::Panic
        } else {
            Effect::Nothing
        }
    }
}

const PANICKED: u8 = 1;
const CRASH_LOADED: u8 = 1 << 1;
