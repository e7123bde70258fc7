//! The few instructions that Rust has no words for. All of this runs at the highest privilege on a machine that the
//! probe owns alone, with all memory mapped one to one.

use core::arch::asm;
use core::arch::x86_64::__cpuid;

/// Writes a byte to a port.
pub fn out8(port: u16, value: u8) {
    // SAFETY: port writes do not touch Rust's memory.
    unsafe {
        asm!("out dx, al", in("dx") port, in("al") value, options(nomem, nostack, preserves_flags))
    }
}

/// Writes two bytes to a port.
pub fn out16(port: u16, value: u16) {
    // SAFETY: as above.
    unsafe {
        asm!("out dx, ax", in("dx") port, in("ax") value, options(nomem, nostack, preserves_flags))
    }
}

/// Reads a byte from a port.
pub fn in8(port: u16) -> u8 {
    let value;
    // SAFETY: as above.
    unsafe {
        asm!("in al, dx", in("dx") port, out("al") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Reads two bytes from a port.
pub fn in16(port: u16) -> u16 {
    let value;
    // SAFETY: as above.
    unsafe {
        asm!("in ax, dx", in("dx") port, out("ax") value, options(nomem, nostack, preserves_flags))
    }
    value
}

/// Sets a device register in memory.
pub fn write_register<T>(address: u64, value: T) {
    // SAFETY: callers name device registers, never memory that Rust knows.
    unsafe { (address as *mut T).write_volatile(value) }
}

/// Bytes of firmware memory, if they lie in the mapped 4 GiB and not at zero.
pub fn memory(address: u64, length: usize) -> Option<&'static [u8]> {
    const MAPPED: u64 = 1 << 32;
    let end = address.checked_add(length as u64)?;
    if address == 0 || end > MAPPED {
        return None;
    }
    // SAFETY: the range is mapped, and firmware memory is not written while the probe runs.
    Some(unsafe { core::slice::from_raw_parts(address as *const u8, length) })
}

/// The four registers of a CPUID leaf as bytes.
pub fn cpuid(leaf: u32) -> [[u8; 4]; 4] {
    let found = __cpuid(leaf);
    [found.eax, found.ebx, found.ecx, found.edx].map(u32::to_le_bytes)
}

/// The processor's own counter.
pub fn cycles() -> u64 {
    // SAFETY: only reads the counter.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Lets interrupts in.
pub fn interrupts_on() {
    // SAFETY: called once handlers for everything that can come are installed.
    unsafe { asm!("sti", options(nostack)) }
}

/// Waits for an interrupt with interrupts on.
pub fn wait_for_interrupt() {
    // SAFETY: handlers for everything that can come are installed before interrupts are started.
    unsafe { asm!("sti", "hlt", options(nostack)) }
}

/// The end of all things: halted with interrupts off.
pub fn halt_forever() -> ! {
    loop {
        // SAFETY: stops the CPU, touches nothing.
        unsafe { asm!("cli", "hlt", options(nomem, nostack)) }
    }
}

/// Faults with an empty interrupt table, which the CPU answers by shutting down.
pub fn triple_fault() -> ! {
    #[repr(C, packed)]
    struct Pointer {
        limit: u16,
        base: u64,
    }
    let nothing = Pointer { limit: 0, base: 0 };
    // SAFETY: never returns, so nothing can be broken by it.
    unsafe { asm!("lidt [{}]", "ud2", in(reg) &nothing, options(noreturn)) }
}
