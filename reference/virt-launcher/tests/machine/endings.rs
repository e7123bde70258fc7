//! The table of endings: what happens, and what state, exit code and termination message say of it.

use std::fs;

use rstest::rstest;
use virt_cmd::{
    Ending, Phase,
    domain::{Bus, Kernel},
    proto::{Empty, ShutdownRequest},
};

use crate::rig::{On, Outcome, Rig, disk, kernel, signal};

/// Who ends the machine, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Guest(&'static str),
    Button,
    ButtonIgnored,
    Forced,
    KillOrder,
    PodDeleted,
    Engine(&'static str),
}

async fn happen(cause: Cause, on: On) -> Rig {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    console.until_button().await;
    match cause {
        Cause::Guest(command) => console.say(command).await,
        Cause::Button => press(&mut rig, 20).await,
        Cause::ButtonIgnored => {
            console.ask("ignore-acpi on").await;
            press(&mut rig, 1).await;
            console.until("button").await;
        }
        Cause::Forced => press(&mut rig, 0).await,
        Cause::KillOrder => drop(rig.client.kill(Empty {}).await.unwrap()),
        Cause::PodDeleted => signal(rig.pid().await, "-TERM"),
        Cause::Engine(name) => signal(rig.qemu_pid().await, name),
    }
    rig
}

async fn press(rig: &mut Rig, grace_seconds: u32) {
    rig.client
        .shutdown(ShutdownRequest { grace_seconds })
        .await
        .unwrap();
}

#[rstest]
#[case::power_off(Cause::Guest("poweroff"), Ending::PoweredOff, 0)]
#[case::panic(Cause::Guest("panic"), Ending::Panicked, 65)]
#[case::power_button(Cause::Button, Ending::PoweredOff, 0)]
#[case::grace_runs_out(Cause::ButtonIgnored, Ending::ShutdownForced, 0)]
#[case::no_grace(Cause::Forced, Ending::ShutdownForced, 0)]
#[case::kill_order(Cause::KillOrder, Ending::Killed, 137)]
#[case::pod_deleted(Cause::PodDeleted, Ending::PoweredOff, 0)]
#[tokio::test]
async fn on_both_back_ends(
    #[case] cause: Cause,
    #[case] ending: Ending,
    #[case] code: i32,
    #[values(On::Vmm, On::Tcg)] on: On,
) {
    let mut rig = happen(cause, on).await;
    let message = ending.as_str_name().to_owned();
    assert_eq!(
        rig.outcome().await,
        Outcome {
            phase: Phase::Ended,
            ending,
            code: Some(code),
            message
        }
    );
}

#[rstest]
#[case::killed("-KILL", Ending::Killed, 137)]
#[case::terminated("-TERM", Ending::Killed, 137)]
#[case::crashed("-SEGV", Ending::EngineError, 70)]
#[tokio::test]
async fn of_the_qemu_process(
    #[case] signal: &'static str,
    #[case] ending: Ending,
    #[case] code: i32,
) {
    let mut rig = happen(Cause::Engine(signal), On::Tcg).await;
    let message = ending.as_str_name().to_owned();
    assert_eq!(
        rig.outcome().await,
        Outcome {
            phase: Phase::Ended,
            ending,
            code: Some(code),
            message
        }
    );
}

#[rstest]
#[case::no_pvh_note(On::Vmm, "kernel cannot be loaded")]
#[case::not_a_kernel(On::Tcg, "QEMU did not start")]
#[tokio::test]
async fn of_a_kernel_that_is_none(#[case] on: On, #[case] detail: &str) {
    let mut rig = Rig::idle(on).await;
    let path = rig.directory().join("kernel");
    fs::write(&path, b"\x7fELF and nothing more").unwrap();
    let mut domain = kernel();
    domain.kernel = Some(Kernel {
        path,
        initrd: None,
        cmdline: String::new(),
    });
    rig.start(&domain).await.unwrap();
    let outcome = rig.outcome().await;
    let message = Ending::NotEnded.as_str_name().to_owned();
    let expected = Outcome {
        phase: Phase::FailedToStart,
        ending: Ending::NotEnded,
        code: Some(70),
        message,
    };
    assert_eq!(outcome, expected);
    assert!(rig.state.detail.contains(detail), "{}", rig.state.detail);
}

#[tokio::test]
async fn of_a_machine_type_that_does_not_exist() {
    let mut domain = kernel();
    domain.machine = "pc-q35-0.1".to_owned();
    let mut rig = Rig::started(On::Tcg, domain).await;
    assert_eq!(rig.outcome().await.phase, Phase::FailedToStart);
    assert!(
        rig.state.detail.contains("unsupported machine type"),
        "{}",
        rig.state.detail
    );
}

/// The same guest from a disk, on every bus that a firmware can boot from, and on the older machine.
#[rstest]
#[case("q35", Bus::Virtio)]
#[case("q35", Bus::Sata)]
#[case("q35", Bus::Scsi)]
#[case("pc", Bus::Virtio)]
#[case("pc", Bus::Sata)]
#[tokio::test]
async fn of_a_guest_on_a_disk(#[case] machine: &str, #[case] bus: Bus) {
    let mut domain = disk(bus);
    domain.machine = machine.to_owned();
    let (mut rig, mut console) = Rig::booted(On::Tcg, domain).await;
    assert_eq!(
        (rig.state.backend.as_str(), rig.state.accelerator.as_str()),
        ("qemu", "tcg")
    );
    assert_eq!(rig.state.machine, machine);
    console.say("poweroff").await;
    assert_eq!(rig.outcome().await.ending, Ending::PoweredOff);
}

/// A kernel beside a disk, on each machine: the firmware leaves the disk alone.
#[rstest]
#[case("q35")]
#[case("pc")]
#[case("microvm")]
#[tokio::test]
async fn of_a_kernel_beside_a_disk(#[case] machine: &str) {
    let mut domain = kernel();
    domain.machine = machine.to_owned();
    domain.disks = disk(Bus::Virtio).disks;
    let (mut rig, mut console) = Rig::booted(On::Tcg, domain).await;
    assert_eq!(rig.state.machine, machine);
    console.say("poweroff").await;
    assert_eq!(rig.outcome().await.ending, Ending::PoweredOff);
}

/// Hardware virtualization and firmware together are slow on hosts that emulate real mode: one of these is enough.
#[tokio::test]
async fn of_a_guest_on_a_disk_with_kvm() {
    let (mut rig, mut console) = Rig::booted(On::QemuKvm, disk(Bus::Virtio)).await;
    assert_eq!(
        (rig.state.backend.as_str(), rig.state.accelerator.as_str()),
        ("qemu", "kvm")
    );
    console.say("poweroff").await;
    assert_eq!(rig.outcome().await.ending, Ending::PoweredOff);
}

#[tokio::test]
async fn of_a_launcher_without_orders() {
    let mut rig = Rig::idle(On::Vmm).await;
    signal(rig.pid().await, "-TERM");
    rig.until(|state| state.phase() == Phase::Ended).await;
    assert_eq!(rig.state.boots, 0);
}
