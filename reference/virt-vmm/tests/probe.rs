//! The probe guest on the real `/dev/kvm`: it boots, talks, is steered, resets in place and ends, each told exactly.

mod support;

use rstest::rstest;
use virt_vmm::{ControlError, Ending, Event, ResetCause};

use crate::support::{Guest, config, no_kvm};

#[test]
fn boots_and_answers() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config("a=b c"));
    assert_eq!(guest.ready(), "PROBE 1 ready boot=pvh cmdline=a=b c");
    assert_eq!(guest.ask("echo hello there"), "echo hello there");
    let ident = guest.ask("ident");
    assert!(
        ident.starts_with("ident probe 1 boot=pvh ") && ident.ends_with("acpi=yes button=yes"),
        "{ident}"
    );
    // 64 MiB but the 384 KiB below 1 MiB.
    assert_eq!(
        guest.ask("mem"),
        format!("mem usable={} ranges=2", (64 << 20) - 0x6_0000)
    );
    assert_eq!(guest.ask("dance"), "error unknown command dance");
    assert_eq!(guest.ask("poweroff"), "poweroff");
    assert_eq!(guest.ending(), Ending::PoweredOff);
}

#[test]
fn events_come_in_order_with_rising_stamps() {
    if no_kvm() {
        return;
    }
    let guest = Guest::start(&config("off=poweroff"));
    let mut stamps = Vec::new();
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Ended { .. })) {
        let stamped = guest.event();
        stamps.push(stamped.monotonic_ns);
        events.push(stamped.event);
    }
    let expected = [
        Event::Created,
        Event::MemoryReady,
        Event::KernelLoaded,
        Event::Entered,
        Event::Running,
        Event::FirstByte,
        Event::Ended {
            cause: Ending::PoweredOff,
        },
    ];
    assert_eq!(events, expected);
    assert!(stamps.is_sorted() && stamps[0] > 0, "{stamps:?}");
    assert_eq!(guest.machine.stats().boots, 1);
}

#[rstest]
#[case::power_off("poweroff", Ending::PoweredOff)]
#[case::panic("panic", Ending::Panicked)]
#[case::debug_exit("exit", Ending::DebugExit { code: 0 })]
fn every_end_of_its_own_is_told_apart(#[case] off: &str, #[case] expected: Ending) {
    if no_kvm() {
        return;
    }
    let mut config = config(&format!("off={off}"));
    config.panic_device = true;
    config.debug_exit = true;
    assert_eq!(Guest::start(&config).ending(), expected);
}

#[rstest]
#[case::keyboard("reboot kbd", ResetCause::Keyboard)]
#[case::cf9("reboot cf9", ResetCause::Cf9)]
#[case::triple_fault("reboot triple", ResetCause::TripleFault)]
fn every_reset_boots_again_in_place(#[case] command: &str, #[case] cause: ResetCause) {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config("again"));
    guest.ready();
    guest.wait_for(&Event::FirstByte);
    for round in 1..=3 {
        assert_eq!(guest.ask(command), command);
        assert_eq!(guest.ready(), "PROBE 1 ready boot=pvh cmdline=again");
        let told: Vec<Event> = (0..4).map(|_| guest.event().event).collect();
        let expected = [
            Event::Rebooted { cause },
            Event::KernelLoaded,
            Event::Entered,
            Event::FirstByte,
        ];
        assert_eq!(told, expected);
        assert_eq!(guest.machine.stats().boots, round + 1);
        assert_eq!(guest.ask("echo again"), "echo again");
    }
    guest.machine.kill();
    assert_eq!(guest.ending(), Ending::Killed);
}

#[test]
fn a_requested_reset_boots_again_from_any_state() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config(""));
    guest.ready();
    guest.machine.reset();
    guest.wait_for(&Event::Rebooted {
        cause: ResetCause::Requested,
    });
    guest.ready();
    // Also while the CPU never leaves the guest by itself.
    guest.say("spin 1000000");
    guest.wait_until_silent();
    guest.machine.reset();
    guest.wait_for(&Event::Rebooted {
        cause: ResetCause::Requested,
    });
    guest.ready();
    // A dead halt is told, and only a reset wakes it.
    assert_eq!(guest.ask("halt"), "halt");
    guest.wait_for(&Event::Stuck);
    guest.machine.reset();
    guest.ready();
    assert_eq!(guest.machine.stats().boots, 4);
}

#[test]
fn a_dead_halt_is_told_once_and_the_machine_stays() {
    if no_kvm() {
        return;
    }
    let guest = Guest::start(&config("off=halt"));
    guest.wait_for(&Event::Stuck);
    assert_eq!(guest.machine.ended(), None);
    guest.machine.kill();
    assert_eq!(
        guest.remaining_events(),
        [Event::Ended {
            cause: Ending::Killed
        }]
    );
}

#[test]
fn an_idle_guest_is_not_stuck() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config(""));
    guest.ready();
    let before: u64 = guest
        .ask("uptime")
        .trim_start_matches("uptime ")
        .parse()
        .expect("a number");
    // Longer than the watchdog's patience, measured by the guest itself.
    guest.ask("spin 2500");
    let after: u64 = guest
        .ask("uptime")
        .trim_start_matches("uptime ")
        .parse()
        .expect("a number");
    assert!(after >= before + 2500, "{before} {after}");
    guest.machine.kill();
    assert!(!guest.remaining_events().contains(&Event::Stuck));
}

#[test]
fn without_a_panic_device_a_panic_is_a_dead_halt() {
    if no_kvm() {
        return;
    }
    let guest = Guest::start(&config("off=panic"));
    guest.wait_for(&Event::Stuck);
    assert_eq!(guest.machine.ended(), None);
}

#[test]
fn pause_stops_the_guest_and_resume_lets_it_go_on() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config(""));
    guest.ready();
    for _ in 0..20 {
        guest.machine.pause();
        guest.wait_for(&Event::Paused);
        let exits = guest.machine.stats().exits;
        guest.say("echo while paused");
        assert_eq!(guest.machine.stats().exits, exits);
        guest.machine.resume();
        guest.wait_for(&Event::Resumed);
        assert_eq!(guest.line(), "echo while paused");
    }
}

#[test]
fn a_machine_started_paused_waits_before_its_first_instruction() {
    if no_kvm() {
        return;
    }
    let mut config = config("off=poweroff");
    config.start_paused = true;
    let guest = Guest::start(&config);
    guest.wait_for(&Event::Paused);
    assert_eq!(guest.machine.stats().boots, 0);
    guest.machine.resume();
    let expected = [
        Event::Resumed,
        Event::Entered,
        Event::Running,
        Event::FirstByte,
        Event::Ended {
            cause: Ending::PoweredOff,
        },
    ];
    assert_eq!(guest.remaining_events(), expected);
}

#[test]
fn a_paused_machine_can_be_reset_and_killed() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config(""));
    guest.ready();
    guest.machine.pause();
    guest.wait_for(&Event::Paused);
    guest.machine.reset();
    guest.wait_for(&Event::KernelLoaded);
    guest.machine.kill();
    assert_eq!(guest.ending(), Ending::Killed);
    assert_eq!(
        guest.remaining_events(),
        [Event::Ended {
            cause: Ending::Killed
        }]
    );
}

#[test]
fn the_power_button_asks_and_the_guest_decides() {
    if no_kvm() {
        return;
    }
    let mut guest = Guest::start(&config(""));
    guest.ready();
    assert_eq!(guest.ask("ignore-acpi on"), "ignore-acpi on");
    guest.machine.power_button();
    assert_eq!(guest.line(), "button");
    assert_eq!(guest.ask("echo still here"), "echo still here");
    assert_eq!(guest.ask("ignore-acpi off"), "ignore-acpi off");
    guest.machine.power_button();
    assert_eq!(guest.line(), "button");
    assert_eq!(guest.ending(), Ending::PoweredOff);
}

#[test]
fn nobody_reading_never_stalls_the_guest() {
    if no_kvm() {
        return;
    }
    // Each boot says two thousand bytes to a reader that does not read, more in all than the ring holds.
    let mut guest = Guest::start(&config(&format!("off=triple {}", "x".repeat(2000))));
    for _ in 0..150 {
        guest.wait_for(&Event::Rebooted {
            cause: ResetCause::TripleFault,
        });
    }
    guest.machine.kill();
    assert_eq!(guest.ending(), Ending::Killed);
    let (kept, lost) = guest.backlog();
    assert!(lost > 0 && kept + lost >= 150 * 2000, "{kept} {lost}");
}

#[test]
fn handles_obey_in_every_state() {
    if no_kvm() {
        return;
    }
    let guest = Guest::create(&config("off=poweroff")).expect("a machine");
    guest.machine.kill();
    assert_eq!(guest.ending(), Ending::Killed);
    assert!(matches!(guest.machine.start(), Err(ControlError::Ended)));
    let guest = Guest::start(&config("off=poweroff"));
    assert_eq!(guest.ending(), Ending::PoweredOff);
    guest.machine.kill();
    guest.machine.pause();
    guest.machine.reset();
    assert_eq!(guest.ending(), Ending::PoweredOff);
    let guest = Guest::start(&config(""));
    assert!(matches!(
        guest.machine.start(),
        Err(ControlError::AlreadyStarted)
    ));
    // Dropping the last handle ends the machine, whether it was started or not.
    for guest in [guest, Guest::create(&config("")).expect("a machine")] {
        let mut reader = guest.machine.console().reader().expect("an eventfd");
        drop(guest);
        let mut buffer = [0; 4096];
        while !reader.read(&mut buffer).closed {}
    }
}

#[test]
fn an_initrd_is_loaded_beside_the_kernel() {
    if no_kvm() {
        return;
    }
    let mut config = config("off=poweroff");
    let initrd = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(initrd.path(), vec![7; 1 << 20]).expect("written");
    config.initrd = Some(initrd.path().to_owned());
    assert_eq!(Guest::start(&config).ending(), Ending::PoweredOff);
    std::fs::write(initrd.path(), vec![7; 63 << 20]).expect("written");
    let error = Guest::create(&config).err().expect("too large");
    let source = std::error::Error::source(&error)
        .expect("a cause")
        .to_string();
    assert_eq!(
        source,
        format!(
            "an initrd of {} bytes does not fit above the kernel",
            63 << 20
        )
    );
}

#[test]
fn high_memory_is_announced() {
    if no_kvm() {
        return;
    }
    let mut config = config("");
    config.memory_bytes = 5 << 30;
    let mut guest = Guest::start(&config);
    guest.ready();
    assert_eq!(
        guest.ask("mem"),
        format!("mem usable={} ranges=3", (5u64 << 30) - 0x6_0000)
    );
}

/// A guest that resets itself for ever never swallows a request.
#[test]
fn many_resets_stay_one_machine() {
    if no_kvm() {
        return;
    }
    let rounds = 200;
    let guest = Guest::start(&config("off=triple"));
    for _ in 0..rounds {
        guest.wait_for(&Event::Rebooted {
            cause: ResetCause::TripleFault,
        });
    }
    guest.machine.kill();
    assert_eq!(guest.ending(), Ending::Killed);
    assert!(guest.machine.stats().boots >= rounds);
}
