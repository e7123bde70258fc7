//! The chipset's reset control register: a rising edge of bit 2 resets the machine.

use crate::devices::Effect;
use crate::event::ResetCause;

/// Its port.
pub(crate) const PORT: u16 = 0xcf9;
/// What the ACPI reset register tells guests to write: hard reset, now.
pub(crate) const RESET_VALUE: u8 = 0x06;

const NOW: u8 = 1 << 2;

/// The register.
#[derive(Debug, Default)]
pub(crate) struct Cf9 {
    value: u8,
}

impl Cf9 {
    pub(crate) fn write(&mut self, value: u8) -> Effect {
        let rising = value & !self.value & NOW != 0;
        self.value = value;
        if rising {
            Effect::Reset(ResetCause::Cf9)
        } else {
            Effect::Nothing
        }
    }

    pub(crate) fn read(&self) -> u8 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_rising_edge_resets() {
        let mut register = Cf9::default();
        assert_eq!(register.write(0x02), Effect::Nothing);
        assert_eq!(register.read(), 0x02);
        assert_eq!(register.write(0x06), Effect::Reset(ResetCause::Cf9));
        assert_eq!(register.write(0x06), Effect::Nothing);
    }
}
