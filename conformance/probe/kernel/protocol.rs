//! The conversation: one line in, one line out, and an ear for the power button in between.

use core::cell::OnceCell;
use core::fmt;

use probe::command::{self, Command, End};

use crate::hardware::{cpuid, cycles, halt_forever, in8, out8, triple_fault, wait_for_interrupt};
use crate::interrupts::uptime_ms;
use crate::power::Power;
use crate::serial::Serial;
use crate::start_info::StartInfo;

/// Longest line; what goes beyond is dropped and answered by an error.
const LINE_BYTES: usize = 1024;
/// Looks for the rest of a line before going idle in its middle.
const LOOKS: u32 = 200;

/// The guest and what it knows of its machine.
pub struct Guest {
    serial: Serial,
    start: StartInfo,
    /// Looked for when it is first needed: reading tables takes longer than the rest of booting.
    power: OnceCell<Option<Power>>,
}

/// Serves commands for ever.
pub fn serve(guest: &Guest) -> ! {
    let mut session = Session {
        ignore_button: false,
        line: [0; LINE_BYTES],
        length: 0,
    };
    loop {
        let mut looks = 0;
        while looks < LOOKS {
            match guest.serial.read() {
                Some(b'\n') => {
                    session.answer(guest);
                    looks = 0;
                }
                Some(byte) => {
                    session.hear(byte);
                    looks = 0;
                }
                None if session.length == 0 => break,
                None => looks += 1,
            }
        }
        if guest.power().is_some_and(Power::button_pressed) {
            guest.say(&[b"button"]);
            if !session.ignore_button {
                guest.carry_out(End::PowerOff);
            }
        }
        wait_for_interrupt();
    }
}

/// What is remembered between bytes and commands.
struct Session {
    ignore_button: bool,
    line: [u8; LINE_BYTES],
    /// Bytes heard, which may be more than were kept.
    length: usize,
}

impl Session {
    fn hear(&mut self, byte: u8) {
        if let Some(slot) = self.line.get_mut(self.length) {
            *slot = byte;
        }
        self.length = self.length.saturating_add(1);
    }

    fn answer(&mut self, guest: &Guest) {
        let serial = &guest.serial;
        let length = core::mem::take(&mut self.length);
        let Some(line) = self.line.get(..length) else {
            return serial.formatted(format_args!("error line of {length} bytes is too long"));
        };
        match command::parse(line) {
            Command::Empty => {}
            Command::Echo(text) => serial.line(&[b"echo ", text]),
            Command::Ident => guest.ident(),
            Command::Uptime => serial.formatted(format_args!("uptime {}", uptime_ms())),
            Command::Mem => {
                let (bytes, ranges) = guest.start.usable();
                serial.formatted(format_args!("mem usable={bytes} ranges={ranges}"));
            }
            Command::IgnoreAcpi(on) => {
                self.ignore_button = on;
                let state: &[u8] = if on { b"on" } else { b"off" };
                serial.line(&[b"ignore-acpi ", state]);
            }
            Command::Spin(ms) => {
                spin(ms);
                serial.formatted(format_args!("spin {ms}"));
            }
            Command::End(end) => {
                serial.line(&[line.strip_suffix(b"\r").unwrap_or(line)]);
                guest.carry_out(end);
            }
            Command::Unknown(line) => serial.line(&[b"error unknown command ", line]),
        }
    }
}

impl Guest {
    /// Nothing looked for yet.
    pub fn new(serial: Serial, start: StartInfo) -> Self {
        Self {
            serial,
            start,
            power: OnceCell::new(),
        }
    }

    /// The command line.
    pub fn cmdline(&self) -> &'static [u8] {
        self.start.cmdline()
    }

    /// Finds the power management, whose button counts from then on.
    pub fn listen_to_button(&self) {
        let _maybe_absent = self.power();
    }

    /// Says that the guest has booted.
    pub fn say_ready(&self) {
        let cmdline = self.start.cmdline();
        self.say(&[
            b"PROBE 1 ready boot=",
            self.start.kind(),
            b" cmdline=",
            cmdline,
        ]);
    }

    /// Sends one line.
    pub fn say(&self, pieces: &[&[u8]]) {
        self.serial.line(pieces);
    }

    fn power(&self) -> Option<&Power> {
        self.power.get_or_init(|| Power::find(&self.start)).as_ref()
    }

    /// Ends or resets the machine. Returns, after an error line, only if the machine does not do it.
    pub fn carry_out(&self, end: End) {
        const PANIC_PORT: u16 = 0x505;
        const EXIT_PORT: u16 = 0xf4;
        match end {
            End::PowerOff => match self.power() {
                Some(power) => power.off(),
                None => return self.say(&[b"error no acpi power management"]),
            },
            End::Keyboard => out8(0x64, 0xfe),
            End::Cf9 => {
                out8(0xcf9, 0x02);
                out8(0xcf9, 0x06);
            }
            End::TripleFault => triple_fault(),
            End::Halt => halt_forever(),
            End::Panic => {
                if in8(PANIC_PORT) != 0xff {
                    out8(PANIC_PORT, 1);
                }
                halt_forever()
            }
            End::Exit(code) => out8(EXIT_PORT, code),
        }
        // A machine whose I/O thread does the work takes a moment.
        settle();
        self.say(&[b"error machine goes on"]);
    }

    fn ident(&self) {
        const HYPERVISOR_LEAF: u32 = 0x4000_0000;
        const HYPERVISOR_PRESENT: u8 = 1 << 7;
        let [_, b, c, d] = cpuid(0);
        let is_virtual = cpuid(1)[2][3] & HYPERVISOR_PRESENT != 0;
        let hypervisor = if is_virtual {
            cpuid(HYPERVISOR_LEAF)
        } else {
            [[0; 4]; 4]
        };
        let yes_no = |yes| if yes { "yes" } else { "no" };
        self.serial.formatted(format_args!(
            "ident probe 1 boot={} cpu={}{}{} hypervisor={}{}{} acpi={} button={}",
            Text(self.start.kind()),
            Text(&b),
            Text(&d),
            Text(&c),
            Text(&hypervisor[1]),
            Text(&hypervisor[2]),
            Text(&hypervisor[3]),
            yes_no(self.power().is_some()),
            yes_no(self.power().is_some_and(Power::has_button)),
        ));
    }
}

/// About a second, counted by the processor since the tick may not have been started yet.
fn settle() {
    const CYCLES: u64 = 2_000_000_000;
    let start = cycles();
    while cycles().wrapping_sub(start) < CYCLES {
        core::hint::spin_loop();
    }
}

/// Burns the CPU; the tick goes on counting.
fn spin(ms: u64) {
    let end = uptime_ms().saturating_add(ms);
    while uptime_ms() < end {
        core::hint::spin_loop();
    }
}

/// The printable part of some bytes.
struct Text<'a>(&'a [u8]);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printable = self.0.iter().filter(|byte| byte.is_ascii_graphic());
        printable.try_for_each(|byte| write!(f, "{}", char::from(*byte)))
    }
}
