//! The tick that ends each idle halt, and a last word for faults.
//!
//! The tick comes from the local APIC. Its clock is taken as 1 GHz, which is what hypervisors emulate; nothing here
//! depends on it being exact.

use core::arch::{asm, global_asm};
use core::ptr::addr_of;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::hardware::{halt_forever, interrupts_on, out8, write_register};
use crate::serial::Serial;

/// Length of a tick.
pub const TICK_MS: u64 = 20;

const APIC: u64 = 0xfee0_0000;
const SPURIOUS: u64 = APIC + 0xf0;
const TIMER: u64 = APIC + 0x320;
const INITIAL_COUNT: u64 = APIC + 0x380;
const DIVIDE: u64 = APIC + 0x3e0;
const DIVIDE_BY_16: u32 = 3;
const COUNTS_PER_MS: u32 = 1_000_000 / 16;
const PERIODIC: u32 = 1 << 17;
const ENABLED: u32 = 1 << 8;
const TICK_VECTOR: u8 = 0x20;
const SPURIOUS_VECTOR: u8 = 0x21;
const VECTORS: usize = 34;

/// Ticks since `start`; the handler below counts.
#[unsafe(no_mangle)]
static PROBE_TICKS: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since `start`, in steps of a tick. Stands still while the machine does.
pub fn uptime_ms() -> u64 {
    PROBE_TICKS.load(Ordering::Relaxed) * TICK_MS
}

// Each stub is 8 bytes long, so that an address is a multiplication. Faults never return.
global_asm!(
    r#"
    .section .text.stubs, "ax"
    .balign 8
    .global interrupt_stubs
interrupt_stubs:
    .set    vector, 0
    .rept   32
    .balign 8
    push    vector
    jmp     fault
    .set    vector, vector + 1
    .endr
    .balign 8
    jmp     tick
    .balign 8
    iretq
fault:
    pop     rdi
    and     rsp, -16
    call    probe_fault
tick:
    push    rax
    inc     qword ptr [rip + PROBE_TICKS]
    mov     eax, 0xfee000b0
    mov     dword ptr [rax], 0
    pop     rax
    iretq
    "#
);

unsafe extern "C" {
    static interrupt_stubs: u8;
}

#[unsafe(no_mangle)]
extern "C" fn probe_fault(vector: u64) -> ! {
    Serial::open().formatted(format_args!("fault vector={vector}"));
    halt_forever()
}

static mut TABLE: [u128; VECTORS] = [0; VECTORS];

/// Installs the handlers, silences the old interrupt controllers and starts the tick.
pub fn start() {
    #[repr(C, packed)]
    struct Pointer {
        limit: u16,
        base: u64,
    }
    let stubs = addr_of!(interrupt_stubs) as u64;
    let table = &raw mut TABLE;
    for vector in 0..VECTORS {
        // SAFETY: the index is in bounds, and interrupts, which would read the table, are still off.
        unsafe { (*table)[vector] = gate(stubs + vector as u64 * 8) };
    }
    let pointer = Pointer {
        limit: (VECTORS * 16 - 1) as u16,
        base: table as u64,
    };
    // SAFETY: the table is complete and lives for ever.
    unsafe { asm!("lidt [{}]", in(reg) &pointer, options(readonly, nostack, preserves_flags)) }
    out8(0x21, 0xff);
    out8(0xa1, 0xff);
    write_register(SPURIOUS, ENABLED | u32::from(SPURIOUS_VECTOR));
    write_register(DIVIDE, DIVIDE_BY_16);
    write_register(TIMER, PERIODIC | u32::from(TICK_VECTOR));
    write_register(INITIAL_COUNT, COUNTS_PER_MS * TICK_MS as u32);
    interrupts_on();
}

/// A 64-bit interrupt gate to the code segment.
fn gate(handler: u64) -> u128 {
    const PRESENT_INTERRUPT_GATE: u128 = 0x8e00;
    const CODE_SEGMENT: u128 = 0x08;
    let handler = u128::from(handler);
    (handler & 0xffff) | CODE_SEGMENT << 16 | PRESENT_INTERRUPT_GATE << 32 | (handler >> 16) << 48
}
