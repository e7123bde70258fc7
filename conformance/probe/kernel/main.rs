//! The probe guest: the suite's eyes inside a machine. It says READY on the serial port, then obeys one command a line.
//!
//! Nothing is set up before READY that READY does not need: on an emulated CPU each thousand instructions cost almost a
//! millisecond. Soft-float, and no instruction that the least capable hypervisor lacks.

#![no_std]
#![no_main]

mod entry;
mod firmware;
mod hardware;
mod interrupts;
mod power;
mod protocol;
mod serial;
mod start_info;

use core::panic::PanicInfo;

use crate::protocol::Guest;
use crate::serial::Serial;
use crate::start_info::StartInfo;

/// Called by the entry code with the address of the start block.
#[unsafe(no_mangle)]
extern "C" fn probe_main(start_info: u64) -> ! {
    let serial = Serial::open();
    let start = StartInfo::at(start_info);
    serial.line(&[
        b"PROBE 1 ready boot=",
        start.kind(),
        b" cmdline=",
        start.cmdline(),
    ]);
    let off = probe::command::off_option(start.cmdline());
    let guest = Guest::new(serial, start);
    match off {
        Some(Ok(end)) => guest.carry_out(end),
        Some(Err(word)) => guest.say(&[b"error unknown end ", word]),
        None => {}
    }
    interrupts::start();
    protocol::serve(&guest)
}

#[panic_handler]
fn own_mistake(_: &PanicInfo<'_>) -> ! {
    Serial::open().line(&[b"fault rust"]);
    hardware::halt_forever()
}
