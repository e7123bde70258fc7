//! The probe guest: the suite's eyes inside a machine. It says READY on the serial port, then obeys one command a line.
//!
//! READY means that it hears commands and the power button. Only a guest that is to end at once (`off=` on its command
//! line) says READY before anything is set up: on an emulated CPU each thousand instructions cost almost a millisecond.
//! Soft-float, and no instruction that the least capable hypervisor lacks.

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
    let guest = Guest::new(Serial::open(), StartInfo::at(start_info));
    let wanted = probe::command::off_option(guest.cmdline());
    if wanted.is_none() {
        interrupts::start();
        guest.listen_to_button();
    }
    guest.say_ready();
    match wanted {
        None => {}
        Some(Ok(end)) => guest.carry_out(end),
        Some(Err(word)) => guest.say(&[b"error unknown end ", word]),
    }
    if wanted.is_some() {
        interrupts::start();
    }
    protocol::serve(&guest)
}

#[panic_handler]
fn own_mistake(_: &PanicInfo<'_>) -> ! {
    Serial::open().line(&[b"fault rust"]);
    hardware::halt_forever()
}
