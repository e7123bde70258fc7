//! The boot sector of the probe's disk form: it loads the payload with INT 13h, asks the BIOS for the memory map, and
//! enters the same kernel with the same start block as a PVH loader would.
//!
//! Where things are: start block 0x1000, memory map 0x2000 (24-byte entries, as PVH wants them), payload 0x10000, from
//! where it is copied to 1 MiB. `conformance/probe-image` fills in the two numbers after the signature `PRBD`.

#![no_std]
#![no_main]

core::arch::global_asm!(
    r#"
    .section .boot, "awx"
    .code16
    .global start
start:
    jmp     begin
    .org    start + 4
    .ascii  "PRBD"
chunks:                         # payload in pieces of 64 sectors
    .long   0
entry:                          # 32-bit entry point
    .long   0

begin:
    cli
    cld
    xorw    %ax, %ax
    movw    %ax, %ds
    movw    %ax, %es
    movw    %ax, %ss
    movw    $0x7c00, %sp
    sti
    movb    %dl, drive

    # Memory map: INT 15h, E820, 20 bytes each into 24-byte slots that are cleared before.
    movw    $0x1000, %di
    movw    $0x1800, %cx
    rep stosw
    xorl    %ebx, %ebx
    movw    $0x2000, %di
next_range:
    movl    $0xe820, %eax
    movl    $0x534d4150, %edx
    movl    $20, %ecx
    int     $0x15
    jc      ranges_done
    addw    $24, %di
    incl    0x1030              # memmap_entries
    testl   %ebx, %ebx
    jz      ranges_done
    cmpw    $0x3800, %di
    jb      next_range
ranges_done:

    # Payload: extended read, 64 sectors at a time.
    movl    chunks, %ebp
read_next:
    movw    $packet, %si
    movb    drive, %dl
    movb    $0x42, %ah
    int     $0x13
    jc      disk_error
    addw    $0x800, packet + 6
    addl    $64, packet + 8
    decl    %ebp
    jnz     read_next

    # The rest of the start block: magic, version, map address, and a mark that says "disk".
    movl    $0x336ec578, 0x1000
    movl    $1, 0x1004
    movl    $0x2000, 0x1028     # memmap_paddr
    movl    $0x4b534944, 0x1034 # reserved

    # A20, then flat protected mode.
    inb     $0x92, %al
    orb     $2, %al
    andb    $0xfe, %al
    outb    %al, $0x92
    cli
    lgdtl   gdt_pointer
    movl    %cr0, %eax
    orb     $1, %al
    movl    %eax, %cr0
    ljmpl   $0x08, $protected

disk_error:
    movw    $message, %si
next_letter:
    lodsb
    testb   %al, %al
    jz      stop
    movw    $0x3f8, %dx
    outb    %al, %dx
    jmp     next_letter
stop:
    hlt
    jmp     stop
message:
    .asciz  "PROBE disk read error\n"

    .code32
protected:
    movw    $0x10, %ax
    movw    %ax, %ds
    movw    %ax, %es
    movw    %ax, %ss
    movl    $0x10000, %esi
    movl    $0x100000, %edi
    movl    chunks, %ecx
    shll    $13, %ecx           # 32 KiB are 8192 words
    rep movsl
    movl    $0x1000, %ebx
    jmpl    *entry

    .balign 4
packet:
    .byte   16, 0
    .word   64
    .word   0, 0x1000           # offset, segment
    .quad   1                   # sector
gdt:
    .quad   0, 0x00cf9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
    .word   . - gdt - 1
    .long   gdt
drive:
    .byte   0
    .org    start + 510
    .word   0xaa55
    "#,
    options(att_syntax)
);

#[panic_handler]
fn no_rust_code_runs_here(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
