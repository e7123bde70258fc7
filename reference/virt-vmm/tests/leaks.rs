//! Many short lives leave nothing behind. A program of its own, so that no other test's descriptors are counted.
#![expect(clippy::expect_used, reason = "what fails here fails the test")]

mod support;

use virt_vmm::Ending;

use crate::support::{Guest, config, no_kvm};

/// Descriptors, threads and memory mappings of this process.
fn held() -> [usize; 3] {
    let entries = |path| std::fs::read_dir(path).expect("proc").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("proc");
    let machine_memory = maps
        .lines()
        .filter(|line| line.contains("kvm") || line.contains("eventfd"));
    [
        entries("/proc/self/fd"),
        entries("/proc/self/task"),
        machine_memory.count(),
    ]
}

#[test]
fn nothing_is_left_of_many_machines() {
    if no_kvm() {
        return;
    }
    let config = config("off=poweroff");
    assert_eq!(Guest::start(&config).ending(), Ending::PoweredOff);
    let before = held();
    for _ in 0..200 {
        assert_eq!(Guest::start(&config).ending(), Ending::PoweredOff);
    }
    assert_eq!(held(), before);
}
