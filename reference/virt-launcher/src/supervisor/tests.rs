use rstest::rstest;

use super::*;

const NOW: Duration = Duration::from_secs(100);
const LATER: Duration = Duration::from_secs(101);
const GRACE: Duration = Duration::from_secs(5);

fn supervisor() -> Supervisor {
    Supervisor::new("uid".to_owned())
}

fn starting() -> Supervisor {
    let mut supervisor = supervisor();
    supervisor.begin(Engine {
        backend: "vmm",
        accelerator: "kvm",
        machine: "vmm".to_owned(),
    });
    supervisor
}

fn running() -> Supervisor {
    let mut supervisor = starting();
    assert_eq!(
        supervisor.observe(NOW, Event::Started { paused: false }),
        None
    );
    supervisor
}

fn paused() -> Supervisor {
    let mut supervisor = running();
    supervisor.observe(NOW, Event::Paused);
    supervisor
}

fn closing() -> Supervisor {
    let mut supervisor = running();
    assert_eq!(
        supervisor.command(NOW, Command::Shutdown { grace: GRACE }),
        Ok(Some(Order::PowerButton))
    );
    supervisor
}

fn powered_off() -> Supervisor {
    let mut supervisor = running();
    assert_eq!(
        supervisor.observe(NOW, Event::PoweredOff),
        Some(Order::Dispose)
    );
    supervisor
}

fn ended() -> Supervisor {
    let mut supervisor = powered_off();
    supervisor.observe(NOW, gone());
    supervisor
}

fn failed() -> Supervisor {
    let mut supervisor = starting();
    supervisor.observe(NOW, Event::Gone(Departure::Failed("no memory".to_owned())));
    supervisor
}

fn gone() -> Event {
    Event::Gone(Departure::Disposed)
}

fn phase(supervisor: &Supervisor) -> Phase {
    supervisor.state(NOW).phase()
}

fn outcome(supervisor: &Supervisor) -> (Phase, Ending, String) {
    let state = supervisor.state(NOW);
    (state.phase(), state.ending(), state.detail)
}

#[rstest]
#[case::idle(supervisor(), Phase::None)]
#[case::starting(starting(), Phase::Starting)]
#[case::running(running(), Phase::Running)]
#[case::paused(paused(), Phase::Paused)]
#[case::closing(closing(), Phase::ShuttingDown)]
#[case::guest_off_but_not_gone(powered_off(), Phase::Running)]
#[case::ended(ended(), Phase::Ended)]
#[case::failed(failed(), Phase::FailedToStart)]
fn phases(#[case] supervisor: Supervisor, #[case] expected: Phase) {
    assert_eq!(phase(&supervisor), expected);
}

const SHUTDOWN: Command = Command::Shutdown { grace: GRACE };
const FORCE: Command = Command::Shutdown {
    grace: Duration::ZERO,
};

/// Every command in every phase: what the machine is told, or that the command is refused.
#[rstest]
#[case(supervisor(), [None, None, None, None, None, Some(None), Some(None), Some(None)])]
#[case(starting(), [None, None, None, None, None, Some(None), Some(Some(Order::Kill)), Some(Some(Order::Kill))])]
#[case(running(), [Some(Some(Order::Pause)), None, Some(Some(Order::Reset)), Some(Some(Order::PowerButton)), None,
    Some(Some(Order::PowerButton)), Some(Some(Order::Kill)), Some(Some(Order::Kill))])]
#[case(paused(), [None, Some(Some(Order::Resume)), Some(Some(Order::Reset)), None, None,
    Some(Some(Order::PowerButton)), Some(Some(Order::Kill)), Some(Some(Order::Kill))])]
#[case(closing(), [None, None, None, None, None,
    Some(Some(Order::PowerButton)), Some(Some(Order::Kill)), Some(Some(Order::Kill))])]
#[case(powered_off(), [None, None, None, None, None, Some(None), Some(None), Some(None)])]
#[case(ended(), [None, None, None, None, Some(None), Some(None), Some(None), Some(None)])]
#[case(failed(), [None, None, None, None, Some(None), Some(None), Some(None), Some(None)])]
fn commands(#[case] supervisor: Supervisor, #[case] expected: [Option<Option<Order>>; 8]) {
    let commands = [
        Command::Pause,
        Command::Resume,
        Command::Reset,
        Command::SoftReboot,
        Command::Release,
        SHUTDOWN,
        FORCE,
        Command::Kill,
    ];
    let answers = commands.map(|command| supervisor.clone().command(LATER, command).ok());
    assert_eq!(answers, expected);
}

#[test]
fn a_refusal_names_both_phases() {
    let refusal = paused().command(NOW, Command::Pause).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "the machine is paused, expected running"
    );
}

/// The table of endings: what happens in a row, and what is reported.
#[rstest]
#[case::guest_powers_off(running(), vec![Event::PoweredOff, gone()], Ending::PoweredOff, "the guest powered off")]
#[case::stop_noise_of_a_dying_machine(
    running(), vec![Event::PoweredOff, Event::Paused, gone()], Ending::PoweredOff, "the guest powered off")]
#[case::obeys_the_button(closing(), vec![Event::PoweredOff, gone()], Ending::PoweredOff, "the guest powered off")]
#[case::panics(running(), vec![Event::Panicked, gone()], Ending::Panicked, "the guest panicked")]
#[case::panics_while_closing(closing(), vec![Event::Panicked, gone()], Ending::Panicked, "the guest panicked")]
#[case::killed(
    running(), vec![Event::Gone(Departure::Killed("signal 9".to_owned()))], Ending::Killed, "signal 9")]
#[case::killed_when_already_off(
    powered_off(), vec![Event::Gone(Departure::Killed("signal 9".to_owned()))], Ending::PoweredOff,
    "the guest powered off")]
#[case::breaks(
    running(), vec![Event::Gone(Departure::Failed("bad exit".to_owned()))], Ending::EngineError, "bad exit")]
#[case::vanishes(running(), vec![gone()], Ending::EngineError, "the machine ended without a reason")]
#[case::first_cause_wins(
    running(), vec![Event::Panicked, Event::PoweredOff, gone()], Ending::Panicked, "the guest panicked")]
fn endings(
    #[case] mut supervisor: Supervisor,
    #[case] events: Vec<Event>,
    #[case] ending: Ending,
    #[case] detail: &str,
) {
    for event in events {
        supervisor.observe(LATER, event);
    }
    assert_eq!(
        outcome(&supervisor),
        (Phase::Ended, ending, detail.to_owned())
    );
}

#[test]
fn a_machine_that_never_was_failed_to_start() {
    assert_eq!(
        outcome(&failed()),
        (
            Phase::FailedToStart,
            Ending::NotEnded,
            "no memory".to_owned()
        )
    );
}

#[test]
fn a_host_without_an_accelerator_fails_to_start() {
    let mut supervisor = supervisor();
    supervisor.cannot_begin(NOW, "no kvm".to_owned());
    assert_eq!(
        outcome(&supervisor),
        (Phase::FailedToStart, Ending::NotEnded, "no kvm".to_owned())
    );
    assert_eq!(supervisor.deadline(), Some(NOW + RELEASE_WAIT));
}

#[test]
fn a_guest_that_ignores_the_button_is_forced_off_at_the_end_of_its_grace() {
    let mut supervisor = closing();
    assert_eq!(
        supervisor.tick(NOW + GRACE - Duration::from_millis(1)),
        None
    );
    assert_eq!(supervisor.tick(NOW + GRACE), Some(Order::Kill));
    supervisor.observe(
        NOW + GRACE,
        Event::Gone(Departure::Killed("signal 9".to_owned())),
    );
    let detail = "the guest did not power off within 5 s".to_owned();
    assert_eq!(
        outcome(&supervisor),
        (Phase::Ended, Ending::ShutdownForced, detail)
    );
}

#[rstest]
#[case::shorter(Duration::from_secs(1), LATER + Duration::from_secs(1))]
#[case::longer(Duration::from_secs(60), NOW + GRACE)]
fn a_second_shutdown_only_shortens_the_grace(#[case] grace: Duration, #[case] deadline: Duration) {
    let mut supervisor = closing();
    assert_eq!(
        supervisor.command(LATER, Command::Shutdown { grace }),
        Ok(Some(Order::PowerButton))
    );
    assert_eq!(supervisor.deadline(), Some(deadline));
}

#[test]
fn a_shutdown_during_the_start_presses_the_button_afterwards() {
    let mut supervisor = starting();
    assert_eq!(supervisor.command(NOW, SHUTDOWN), Ok(None));
    assert_eq!(
        supervisor.observe(LATER, Event::Started { paused: false }),
        Some(Order::PowerButton)
    );
    assert_eq!(phase(&supervisor), Phase::ShuttingDown);
}

#[test]
fn a_kill_during_the_start_is_a_kill() {
    let mut supervisor = starting();
    assert_eq!(
        supervisor.command(NOW, Command::Kill),
        Ok(Some(Order::Kill))
    );
    supervisor.observe(LATER, Event::Started { paused: false });
    supervisor.observe(LATER, gone());
    assert_eq!(
        outcome(&supervisor),
        (Phase::Ended, Ending::Killed, "killed by order".to_owned())
    );
}

#[test]
fn a_paused_guest_can_be_resumed_to_obey_the_button() {
    let mut supervisor = paused();
    supervisor.command(NOW, SHUTDOWN).unwrap();
    assert_eq!(phase(&supervisor), Phase::ShuttingDown);
    assert_eq!(
        supervisor.command(NOW, Command::Resume),
        Ok(Some(Order::Resume))
    );
}

#[test]
fn resets_are_boots_and_nothing_else() {
    let mut supervisor = running();
    for _ in 0..3 {
        assert_eq!(supervisor.observe(NOW, Event::Rebooted), None);
    }
    let state = supervisor.state(NOW);
    assert_eq!(
        (state.phase(), state.ending(), state.boots),
        (Phase::Running, Ending::NotEnded, 4)
    );
}

#[test]
fn a_soft_reboot_turns_the_power_off_into_a_boot() {
    let mut supervisor = running();
    assert_eq!(
        supervisor.command(NOW, Command::SoftReboot),
        Ok(Some(Order::PowerButton))
    );
    assert_eq!(
        supervisor.observe(LATER, Event::PoweredOff),
        Some(Order::BootAgain)
    );
    let mut phases = Vec::new();
    for event in [Event::Paused, Event::Rebooted, Event::Resumed] {
        supervisor.observe(LATER, event);
        phases.push(phase(&supervisor));
    }
    assert_eq!(phases, [Phase::Running; 3]);
    assert_eq!(supervisor.state(NOW).boots, 2);
    assert_eq!(
        supervisor.observe(LATER, Event::PoweredOff),
        Some(Order::Dispose)
    );
}

#[test]
fn a_soft_reboot_is_forgotten_after_a_while_and_when_a_shutdown_comes() {
    let mut late = running();
    late.command(NOW, Command::SoftReboot).unwrap();
    assert_eq!(
        late.observe(NOW + SOFT_REBOOT_WAIT + GRACE, Event::PoweredOff),
        Some(Order::Dispose)
    );

    let mut overruled = running();
    overruled.command(NOW, Command::SoftReboot).unwrap();
    overruled.command(NOW, SHUTDOWN).unwrap();
    assert_eq!(
        overruled.observe(LATER, Event::PoweredOff),
        Some(Order::Dispose)
    );
}

#[rstest]
#[case::released(|supervisor: &mut Supervisor| { supervisor.command(NOW, Command::Release).unwrap(); })]
#[case::nobody_came(|supervisor: &mut Supervisor| { supervisor.tick(NOW + RELEASE_WAIT); })]
fn an_ended_launcher_waits_to_be_released(#[case] finish: fn(&mut Supervisor)) {
    let mut supervisor = ended();
    supervisor.tick(NOW + RELEASE_WAIT - Duration::from_millis(1));
    assert!(!supervisor.is_finished());
    finish(&mut supervisor);
    assert!(supervisor.is_finished());
}

#[test]
fn a_machine_that_will_not_go_is_given_up() {
    let mut supervisor = powered_off();
    assert_eq!(supervisor.tick(NOW + DISPOSAL_WAIT), None);
    assert_eq!(supervisor.state(NOW).ending(), Ending::PoweredOff);
    assert_eq!(phase(&supervisor), Phase::Ended);
}

#[test]
fn a_launcher_that_was_never_used_ends_at_once() {
    let mut supervisor = supervisor();
    assert_eq!(supervisor.command(NOW, SHUTDOWN), Ok(None));
    assert!(supervisor.is_finished());
    let state = supervisor.state(NOW);
    assert_eq!(
        (state.phase(), state.ending(), state.boots),
        (Phase::Ended, Ending::ShutdownForced, 0)
    );
}

#[test]
fn a_note_is_shown_until_the_next_boot() {
    let mut supervisor = running();
    supervisor.observe(NOW, Event::Note("the disk is full".to_owned()));
    assert_eq!(supervisor.state(NOW).detail, "the disk is full");
    supervisor.observe(NOW, Event::Rebooted);
    assert_eq!(supervisor.state(NOW).detail, "");
}

#[test]
fn a_machine_ordered_paused_starts_paused() {
    let mut supervisor = starting();
    supervisor.observe(NOW, Event::Started { paused: true });
    assert_eq!(phase(&supervisor), Phase::Paused);
}
