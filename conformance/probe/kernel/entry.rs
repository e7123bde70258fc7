//! From 32-bit protected mode (the PVH contract, which the boot sector also keeps) to Rust in long mode.
//!
//! The page tables are finished data, not made by code: 4 GiB one to one in 2 MiB pages, the last of them uncached.

core::arch::global_asm!(
    r#"
    .section .note.pvh, "a", @note
    .balign 4
    .long   4, 8, 18            # XEN_ELFNOTE_PHYS32_ENTRY
    .asciz  "Xen"
    .quad   pvh_start

    .section .text.entry, "ax"
    .code32
    .global pvh_start
pvh_start:
    cli
    cld
    movl    %cr4, %eax
    orl     $0x20, %eax         # PAE
    movl    %eax, %cr4
    movl    $pml4, %eax
    movl    %eax, %cr3
    movl    $0xc0000080, %ecx   # EFER.LME
    rdmsr
    orl     $0x100, %eax
    wrmsr
    movl    %cr0, %eax
    orl     $0x80000001, %eax
    movl    %eax, %cr0
    lgdt    gdt_pointer
    ljmp    $0x08, $long_mode

    .code64
long_mode:
    movl    $0x10, %eax
    movl    %eax, %ds
    movl    %eax, %es
    movl    %eax, %ss
    movl    $stack_top, %esp
    xorl    %ebp, %ebp
    movl    %ebx, %edi
    call    probe_main
    ud2

    .section .data.tables, "aw"
    .balign 4096
pml4:
    .quad   pdpt + 3
    .fill   511, 8, 0
pdpt:
    .quad   directories + 3, directories + 0x1003, directories + 0x2003, directories + 0x3003
    .fill   508, 8, 0
directories:
    .set    page, 0
    .rept   1536
    .quad   (page << 21) | 0x83
    .set    page, page + 1
    .endr
    .rept   512
    .quad   (page << 21) | 0x9b
    .set    page, page + 1
    .endr
gdt:
    .quad   0, 0x00af9b000000ffff, 0x00cf93000000ffff
gdt_pointer:
    .word   . - gdt - 1
    .quad   gdt

    .section .bss.stack, "aw", @nobits
    .balign 16
    .skip   16384
stack_top:
    "#,
    options(att_syntax)
);
