//! A living guest: boots, resets in place, pauses, and orders that do not fit.

use rstest::rstest;
use tonic::Code;
use virt_cmd::{
    Phase,
    domain::Kernel,
    proto::{Empty, ShutdownRequest},
};

use crate::rig::{On, Rig, kernel};

#[rstest]
#[tokio::test]
async fn the_state_says_how_the_guest_runs(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    let expected = match on {
        On::Vmm => ("vmm", "kvm", "vmm"),
        On::Tcg | On::QemuKvm => ("qemu", "tcg", "q35"),
    };
    let state = &rig.state;
    assert_eq!(
        (
            state.backend.as_str(),
            state.accelerator.as_str(),
            state.machine.as_str()
        ),
        expected
    );
    assert_eq!((state.boots, state.detail.as_str()), (1, ""));
    assert!(
        rig.start(&kernel()).await.unwrap(),
        "a second start changes nothing"
    );
    assert_eq!(console.ask("echo still here").await, "echo still here");
}

#[rstest]
#[case::keyboard_controller("reboot kbd")]
#[case::reset_control_port("reboot cf9")]
#[case::triple_fault("reboot triple")]
#[tokio::test]
async fn a_reset_by_the_guest_boots_it_in_place(
    #[case] command: &str,
    #[values(On::Vmm, On::Tcg)] on: On,
) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    let engine = engine_of(&rig, on).await;
    for boots in 2..=3 {
        console.say(command).await;
        console.until("PROBE 1 ready").await;
        rig.until(|state| state.boots == boots).await;
        assert_eq!(rig.state.phase(), Phase::Running);
    }
    assert_eq!(engine_of(&rig, on).await, engine, "the process stays");
    assert_eq!(console.ask("echo again").await, "echo again");
}

/// The process that the guest runs in.
async fn engine_of(rig: &Rig, on: On) -> i32 {
    if on == On::Vmm {
        rig.pid().await
    } else {
        rig.qemu_pid().await
    }
}

#[rstest]
#[tokio::test]
async fn the_reset_button_boots_in_place(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    console.say("halt").await;
    console.until("halt").await;
    rig.client.reset(Empty {}).await.unwrap();
    console.until("PROBE 1 ready").await;
    assert_eq!(
        rig.until(|state| state.boots == 2).await.phase(),
        Phase::Running
    );
}

#[rstest]
#[tokio::test]
async fn a_soft_reboot_is_the_guests_own_and_boots_again(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    console.until_button().await;
    rig.client.soft_reboot(Empty {}).await.unwrap();
    console.until("button").await;
    console.until("PROBE 1 ready").await;
    assert_eq!(
        rig.until(|state| state.boots == 2).await.phase(),
        Phase::Running
    );
    assert_eq!(console.ask("echo back").await, "echo back");
}

/// The guest's clock stands still with it: it counts only the time in which it ran.
#[rstest]
#[tokio::test]
async fn a_paused_guest_stands_still(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    rig.client.pause(Empty {}).await.unwrap();
    rig.until(|state| state.phase() == Phase::Paused).await;
    let again = rig.client.pause(Empty {}).await.unwrap_err();
    assert_eq!(
        (again.code(), again.message()),
        (
            Code::FailedPrecondition,
            "the machine is paused, expected running"
        )
    );

    console.say("echo later").await;
    rig.client.resume(Empty {}).await.unwrap();
    rig.until(|state| state.phase() == Phase::Running).await;
    assert_eq!(console.until("echo").await, "echo later");
    let again = rig.client.resume(Empty {}).await.unwrap_err();
    assert_eq!(
        (again.code(), again.message()),
        (
            Code::FailedPrecondition,
            "the machine is running, expected paused"
        )
    );
}

#[tokio::test]
async fn a_missing_kernel_is_no_failed_machine() {
    let mut rig = Rig::idle(On::Vmm).await;
    let path = rig.directory().join("missing");
    let mut domain = kernel();
    domain.kernel = Some(Kernel {
        path: path.clone(),
        initrd: None,
        cmdline: String::new(),
    });
    let status = rig.start(&domain).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    let expected = format!(
        "failed to open the kernel {}: No such file or directory (os error 2)",
        path.display()
    );
    assert_eq!(status.message(), expected);
    assert!(
        !rig.start(&kernel()).await.unwrap(),
        "the next order is the first"
    );
    rig.until(|state| state.phase() == Phase::Running).await;
}

#[tokio::test]
async fn an_order_for_another_instance_is_refused() {
    let mut rig = Rig::idle(On::Vmm).await;
    let mut domain = kernel();
    domain.uid = "another".to_owned();
    assert_eq!(
        rig.start(&domain).await.unwrap_err().code(),
        Code::InvalidArgument
    );
}

#[tokio::test]
async fn orders_before_the_start_are_refused() {
    let mut rig = Rig::idle(On::Vmm).await;
    assert_eq!(
        rig.client.pause(Empty {}).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        rig.client.reset(Empty {}).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
    assert_eq!(
        rig.client.release(Empty {}).await.unwrap_err().code(),
        Code::FailedPrecondition
    );
}

#[rstest]
#[tokio::test]
async fn a_shutdown_is_visible_while_it_lasts(#[values(On::Vmm, On::Tcg)] on: On) {
    let (mut rig, mut console) = Rig::booted(on, kernel()).await;
    console.until_button().await;
    console.ask("ignore-acpi on").await;
    rig.client
        .shutdown(ShutdownRequest { grace_seconds: 60 })
        .await
        .unwrap();
    rig.until(|state| state.phase() == Phase::ShuttingDown)
        .await;
    console.ask("ignore-acpi off").await;
    // A guest that had not looked at the button yet obeys the first press, and may be gone by now.
    let again = rig
        .client
        .shutdown(ShutdownRequest { grace_seconds: 60 })
        .await;
    if let Err(refused) = again {
        assert_eq!(refused.code(), Code::Aborted);
    }
    rig.until(|state| state.phase() == Phase::Ended).await;
}
