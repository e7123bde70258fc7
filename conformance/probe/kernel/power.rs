//! ACPI power: switching off, and noticing the power button.

use probe::acpi::{self, Fixed, HEADER, Register};

use crate::firmware::{table, tables};
use crate::hardware::{in16, out8, out16, write_register};
use crate::start_info::StartInfo;

const BUTTON: u16 = 1 << 8;
const SCI_ENABLED: u16 = 1;
/// Looks at a register before giving up.
const PATIENCE: u32 = 100_000;

/// The machine's power management.
pub struct Power {
    fixed: Fixed,
    sleep_types: [u8; 2],
}

impl Power {
    /// Finds the tables, switches to ACPI mode and listens to the button.
    pub fn find(start: &StartInfo) -> Option<Self> {
        let fixed = tables(start)?
            .find(|table| table.starts_with(b"FACP"))
            .and_then(acpi::fixed)?;
        let blocks = tables(start)?.filter(|table| table.starts_with(b"SSDT"));
        let mut blocks = table(fixed.dsdt).into_iter().chain(blocks);
        let sleep_types = blocks.find_map(|block| acpi::sleep_types(block.get(HEADER..)?))?;
        let power = Self { fixed, sleep_types };
        power.enable();
        Some(power)
    }

    fn enable(&self) {
        if let (Some((port, value)), Some(control)) = (self.fixed.enable, self.fixed.control[0])
            && in16(control) & SCI_ENABLED == 0
        {
            out8(port, value);
            let _late = (0..PATIENCE).find(|_| in16(control) & SCI_ENABLED != 0);
        }
        if let (true, Some((_, enable))) = (self.fixed.button, self.fixed.event) {
            // The status is left alone: somebody may have pressed already.
            out16(enable, BUTTON);
        }
    }

    /// Whether the power button can be noticed.
    pub fn has_button(&self) -> bool {
        self.fixed.button
    }

    /// Whether the button was pressed since the last look.
    pub fn button_pressed(&self) -> bool {
        match self.fixed.event {
            Some((status, _)) if self.fixed.button && in16(status) & BUTTON != 0 => {
                out16(status, BUTTON);
                true
            }
            _ => false,
        }
    }

    /// Switches the machine off. Returns only if that does not work.
    pub fn off(&self) {
        const SLEEP_ENABLE: u16 = 1 << 13;
        const KEPT: u16 = 0x03ff;
        for (control, sleep_type) in self.fixed.control.into_iter().zip(self.sleep_types) {
            if let Some(port) = control {
                let kept = in16(port) & KEPT;
                out16(port, kept | u16::from(sleep_type & 7) << 10 | SLEEP_ENABLE);
            }
        }
        let reduced = (self.sleep_types[0] & 7) << 2 | 1 << 5;
        match self.fixed.sleep {
            Some(Register::Port(port)) => out8(port, reduced),
            Some(Register::Memory(address)) => write_register(address, reduced),
            None => {}
        }
    }
}
