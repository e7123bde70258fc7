//! A port that ends the machine at once, for tests and benches that ask for it.

use crate::devices::Effect;

/// Its port, the one that QEMU's isa-debug-exit is usually given.
pub(crate) const PORT: u16 = 0xf4;

pub(crate) fn write(code: u8) -> Effect {
    Effect::DebugExit(code)
}
