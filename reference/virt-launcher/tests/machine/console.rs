//! The serial console: echoes, clients that replace each other, and readers that do not read.

use std::{fs, os::unix::fs::PermissionsExt};

use rstest::rstest;
use virt_cmd::{Phase, proto::Empty};

use crate::rig::{On, Rig, kernel};

#[rstest]
#[tokio::test]
async fn it_carries_both_ways_and_the_newest_client_wins(#[values(On::Vmm, On::Tcg)] on: On) {
    let (rig, mut first) = Rig::booted(on, kernel()).await;
    assert_eq!(first.ask("echo one").await, "echo one");
    let mut second = rig.console().await;
    assert_eq!(second.ask("echo two").await, "echo two");
    first.closed().await;
    let mut third = rig.console().await;
    assert_eq!(third.ask("echo three").await, "echo three");
    second.closed().await;
}

#[rstest]
#[tokio::test]
async fn a_new_client_sees_nothing_of_the_past(#[values(On::Vmm, On::Tcg)] on: On) {
    let (rig, mut first) = Rig::booted(on, kernel()).await;
    first.ask("echo secret").await;
    drop(first);
    let mut second = rig.console().await;
    second.say("echo fresh").await;
    assert_eq!(second.until("echo").await, "echo fresh");
}

/// The guest resets itself again and again and says a kilobyte each time: far more than all buffers hold.
#[rstest]
#[case::our_machine(On::Vmm, "triple")]
#[case::qemu(On::Tcg, "kbd")]
#[tokio::test]
async fn a_client_that_does_not_read_does_not_stall_the_guest(#[case] on: On, #[case] reset: &str) {
    let mut domain = kernel();
    domain.paused = true;
    if let Some(kernel) = &mut domain.kernel {
        kernel.cmdline = format!("off={reset} padding={}", "x".repeat(1900));
    }
    let mut rig = Rig::started(on, domain).await;
    rig.until(|state| state.phase() == Phase::Paused).await;
    let _deaf = rig.console().await;
    rig.client.resume(Empty {}).await.unwrap();
    rig.until(|state| state.boots > 180).await;
    assert_eq!(rig.state.phase(), Phase::Running);
    rig.client.kill(Empty {}).await.unwrap();
    rig.until(|state| state.phase() == Phase::Ended).await;
}

#[rstest]
#[tokio::test]
async fn the_guests_lines_are_printed(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    console.ask("echo for the log").await;
    console.say("poweroff").await;
    rig.outcome().await;
    let output = rig.stdout();
    let lines: Vec<_> = output
        .lines()
        .skip_while(|line| !line.starts_with("PROBE"))
        .collect();
    let ready = "PROBE 1 ready boot=pvh cmdline=from=test";
    assert_eq!(lines, [ready, "echo for the log", "poweroff"], "{output}");
}

#[tokio::test]
async fn nothing_is_printed_unless_it_is_asked_for() {
    let mut domain = kernel();
    domain.log_serial = false;
    let (mut rig, mut console) = Rig::booted(On::Vmm, domain).await;
    console.say("poweroff").await;
    rig.outcome().await;
    assert_eq!(rig.stdout(), "");
}

#[tokio::test]
async fn the_sockets_are_for_owner_and_group() {
    let rig = Rig::idle(On::Vmm).await;
    for socket in [rig.paths.command_socket(), rig.paths.serial_console()] {
        assert_eq!(
            fs::metadata(socket).unwrap().permissions().mode() & 0o777,
            0o660
        );
    }
}
