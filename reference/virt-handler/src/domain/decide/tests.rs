use rstest::rstest;

use super::*;

const SCHEDULED: VmiFacts = VmiFacts {
    phase: VmiPhase::Scheduled,
    deleting: false,
    gone: false,
    grace_seconds: 30,
    acpi: true,
};
const RUNNING: VmiFacts = VmiFacts {
    phase: VmiPhase::Running,
    ..SCHEDULED
};
const DELETING: VmiFacts = VmiFacts {
    deleting: true,
    ..RUNNING
};
const FINAL: VmiFacts = VmiFacts {
    phase: VmiPhase::Failed,
    ..SCHEDULED
};
const NOTHING: Done = Done {
    started: false,
    shutdown_grace: None,
    killed: false,
    released: false,
};
const STARTED: Done = Done {
    started: true,
    ..NOTHING
};

fn alive(phase: Phase) -> Launcher {
    Launcher::Alive(state(phase, Ending::NotEnded))
}

fn ended(ending: Ending) -> Launcher {
    Launcher::Alive(state(Phase::Ended, ending))
}

fn state(phase: Phase, ending: Ending) -> DomainState {
    DomainState {
        phase: phase.into(),
        ending: ending.into(),
        boots: u32::from(phase != Phase::None && phase != Phase::FailedToStart),
        ..DomainState::default()
    }
}

fn preparing() -> Action {
    Action::Record(Outcome::Preparing)
}

fn up() -> Action {
    Action::Record(Outcome::Up { paused: false })
}

fn paused() -> Action {
    Action::Record(Outcome::Up { paused: true })
}

fn over(success: bool) -> Action {
    Action::Record(Outcome::Ended(End {
        success,
        panicked: false,
        start_error: None,
    }))
}

fn shutdown(grace_seconds: u32) -> Action {
    Action::Shutdown { grace_seconds }
}

fn told(grace: u32) -> Done {
    Done {
        shutdown_grace: Some(grace),
        ..STARTED
    }
}

#[rstest]
#[case::the_launcher_is_not_there(SCHEDULED, Launcher::Awaited, NOTHING, vec![preparing()])]
#[case::hand_over_the_domain(SCHEDULED, alive(Phase::None), NOTHING, vec![preparing(), Action::Start])]
#[case::once_only(SCHEDULED, alive(Phase::None), STARTED, vec![preparing()])]
#[case::starting(SCHEDULED, alive(Phase::Starting), STARTED, vec![preparing()])]
#[case::runs(SCHEDULED, alive(Phase::Running), STARTED, vec![up()])]
#[case::starts_paused(SCHEDULED, alive(Phase::Paused), STARTED, vec![paused()])]
#[case::a_restarted_handler_only_looks(RUNNING, alive(Phase::Running), NOTHING, vec![up()])]
#[case::paused_later(RUNNING, alive(Phase::Paused), STARTED, vec![paused()])]
#[case::shut_down_by_the_pod(RUNNING, alive(Phase::ShuttingDown), STARTED, vec![up()])]
#[case::running_and_awaited(RUNNING, Launcher::Awaited, NOTHING, vec![])]
#[case::ran_so_briefly_that_nobody_saw(SCHEDULED, ended(Ending::PoweredOff), STARTED, vec![up(), over(true)])]
#[case::forgot_its_machine(RUNNING, alive(Phase::None), NOTHING, vec![over(false)])]
fn a_machine_is_followed(
    #[case] vmi: VmiFacts,
    #[case] launcher: Launcher,
    #[case] done: Done,
    #[case] actions: Vec<Action>,
) {
    assert_eq!(decide(vmi, &launcher, done), actions);
}

#[rstest]
#[case::asked_to_power_off(DELETING, alive(Phase::Running), STARTED, vec![up(), shutdown(30)])]
#[case::asked_once(DELETING, alive(Phase::ShuttingDown), told(30), vec![up()])]
#[case::a_shorter_grace_is_told(VmiFacts { grace_seconds: 0, ..DELETING }, alive(Phase::ShuttingDown), told(30), vec![up(), shutdown(0)])]
#[case::a_longer_one_is_not(VmiFacts { grace_seconds: 60, ..DELETING }, alive(Phase::ShuttingDown), told(30), vec![up()])]
#[case::paused_guests_too(DELETING, alive(Phase::Paused), STARTED, vec![paused(), shutdown(30)])]
#[case::while_starting(VmiFacts { deleting: true, ..SCHEDULED }, alive(Phase::Starting), STARTED, vec![preparing(), shutdown(30)])]
#[case::never_ran(VmiFacts { deleting: true, ..SCHEDULED }, alive(Phase::None), NOTHING, vec![over(false)])]
fn a_deleted_vmi_is_shut_down(
    #[case] vmi: VmiFacts,
    #[case] launcher: Launcher,
    #[case] done: Done,
    #[case] actions: Vec<Action>,
) {
    assert_eq!(decide(vmi, &launcher, done), actions);
}

#[rstest]
#[case(RUNNING, Ending::PoweredOff, true)]
#[case(RUNNING, Ending::Killed, false)]
#[case(RUNNING, Ending::EngineError, false)]
#[case(RUNNING, Ending::Stuck, false)]
#[case(RUNNING, Ending::NotEnded, false)]
#[case::ignored_the_button(DELETING, Ending::ShutdownForced, false)]
#[case::had_no_time(VmiFacts { grace_seconds: 0, ..DELETING }, Ending::ShutdownForced, true)]
#[case::had_no_button(VmiFacts { acpi: false, ..DELETING }, Ending::ShutdownForced, true)]
#[case::killed_on_request(VmiFacts { grace_seconds: 0, ..DELETING }, Ending::Killed, true)]
#[case::killed_by_others(DELETING, Ending::Killed, false)]
fn endings(#[case] vmi: VmiFacts, #[case] ending: Ending, #[case] success: bool) {
    assert_eq!(decide(vmi, &ended(ending), STARTED), [over(success)]);
    let last_words = Launcher::Missing(Some(state(Phase::Ended, ending)));
    assert_eq!(decide(vmi, &last_words, NOTHING), [over(success)]);
}

#[test]
fn a_dead_launcher_is_a_crash_unless_it_said_otherwise() {
    assert_eq!(
        decide(RUNNING, &Launcher::Missing(None), NOTHING),
        [over(false)]
    );
    let was_running = Launcher::Missing(Some(state(Phase::Running, Ending::NotEnded)));
    assert_eq!(decide(RUNNING, &was_running, NOTHING), [over(false)]);
}

#[test]
fn a_launcher_that_was_ended_before_it_had_a_machine_is_no_success() {
    let mut never = state(Phase::Ended, Ending::ShutdownForced);
    never.boots = 0;
    let deleted = VmiFacts {
        deleting: true,
        grace_seconds: 0,
        ..SCHEDULED
    };
    let actions = decide(deleted, &Launcher::Alive(never), NOTHING);
    assert_eq!(actions, [over(false)]);
}

#[test]
fn panic_and_failed_start_are_told_apart() {
    let panicked = Outcome::Ended(End {
        success: false,
        panicked: true,
        start_error: None,
    });
    assert_eq!(
        decide(RUNNING, &ended(Ending::Panicked), STARTED),
        [Action::Record(panicked)]
    );
    let mut failed = state(Phase::FailedToStart, Ending::EngineError);
    failed.detail = "no usable /dev/kvm".to_owned();
    let outcome = Outcome::Ended(End {
        success: false,
        panicked: false,
        start_error: Some("no usable /dev/kvm".to_owned()),
    });
    assert_eq!(
        decide(SCHEDULED, &Launcher::Alive(failed), STARTED),
        [Action::Record(outcome)]
    );
}

#[rstest]
#[case::not_seen_yet(FINAL, Launcher::Awaited, STARTED, vec![])]
#[case::nobody_left(FINAL, Launcher::Missing(None), STARTED, vec![Action::Finish])]
#[case::let_it_go(FINAL, ended(Ending::PoweredOff), STARTED, vec![Action::Release, Action::Finish])]
#[case::never_started(FINAL, alive(Phase::None), NOTHING, vec![Action::Kill, Action::Finish])]
#[case::a_machine_without_a_vmi_dies(FINAL, alive(Phase::Running), STARTED, vec![Action::Kill])]
#[case::killing_takes_a_moment(FINAL, alive(Phase::Running), Done { killed: true, ..STARTED }, vec![])]
#[case::released_before(FINAL, ended(Ending::PoweredOff), Done { released: true, ..STARTED }, vec![Action::Finish])]
#[case::the_object_vanished(VmiFacts { gone: true, ..RUNNING }, alive(Phase::Running), STARTED, vec![Action::Kill])]
fn a_final_vmi_has_no_launcher(
    #[case] vmi: VmiFacts,
    #[case] launcher: Launcher,
    #[case] done: Done,
    #[case] actions: Vec<Action>,
) {
    assert_eq!(decide(vmi, &launcher, done), actions);
}

#[rstest]
#[case(VmiPhase::Unset)]
#[case(VmiPhase::Pending)]
#[case(VmiPhase::Scheduling)]
#[case(VmiPhase::WaitingForSync)]
fn phases_of_the_controller_are_left_alone(#[case] phase: VmiPhase) {
    let vmi = VmiFacts { phase, ..SCHEDULED };
    assert_eq!(decide(vmi, &alive(Phase::None), NOTHING), []);
    assert_eq!(decide(vmi, &Launcher::Missing(None), NOTHING), []);
}
