//! runStrategy: what is to become of the VMI. One row of this table for each pair of strategy and
//! state; nothing else in the program starts or stops a VMI.

use std::time::Duration;

use kubevirt_api::v1::{RunStrategy, VirtualMachineInstance, VirtualMachineInstancePhase};

use super::{observe::phase, requests::StartOrder};

/// The VMI as far as strategies care.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Absent,
    Active,
    Succeeded,
    Failed,
    /// Somebody deleted it; nothing to do but to wait.
    Leaving,
}

impl Presence {
    pub(super) fn of(vmi: Option<&VirtualMachineInstance>) -> Self {
        match vmi {
            None => Self::Absent,
            Some(vmi) if vmi.metadata.deletion_timestamp.is_some() => Self::Leaving,
            Some(vmi) => match phase(vmi) {
                VirtualMachineInstancePhase::Succeeded => Self::Succeeded,
                VirtualMachineInstancePhase::Failed => Self::Failed,
                _ => Self::Active,
            },
        }
    }
}

/// What a strategy looks at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Situation {
    pub(super) vmi: Presence,
    /// The first order is to stop this VMI.
    pub(super) stop: bool,
    /// The first order is to start.
    pub(super) start: Option<StartOrder>,
    /// The strategy is not the one that the last VMI was made under.
    pub(super) switched: bool,
    /// Time until a start is allowed after failed ones.
    pub(super) wait: Option<Duration>,
}

/// What is to become of the VMI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Intent {
    /// Leave things as they are.
    Keep,
    /// Make a VMI.
    Create { paused: bool },
    /// Make a VMI, but not yet.
    CreateLater(Duration),
    /// Delete the VMI.
    Delete,
    /// Delete the VMI and order a start, so that a new one follows.
    DeleteThenStart,
    /// Change the VM's spec to Always: a start was ordered of a halted VM.
    TurnOn,
    /// The strategy is not known.
    Unsupported,
}

/// The table.
pub(super) fn intent(strategy: &RunStrategy, now: Situation) -> Intent {
    use Presence::{Absent, Active, Failed, Leaving, Succeeded};
    match (strategy, now.vmi) {
        (RunStrategy::Other(_), _) => Intent::Unsupported,
        (RunStrategy::WaitAsReceiver, _) | (_, Leaving) => Intent::Keep,

        (RunStrategy::Always, Absent) => create_after_wait(now),
        (RunStrategy::Always, Active) => delete_if(now.stop),
        (RunStrategy::Always, Succeeded | Failed) => Intent::Delete,

        (RunStrategy::RerunOnFailure, Absent) if now.start.is_some() || now.switched => {
            create_after_wait(now)
        }
        (RunStrategy::RerunOnFailure, Absent) => Intent::Keep,
        (RunStrategy::RerunOnFailure, Active) => delete_if(now.stop),
        (RunStrategy::RerunOnFailure, Succeeded) => Intent::Delete,
        (RunStrategy::RerunOnFailure, Failed) if now.stop => Intent::Delete,
        (RunStrategy::RerunOnFailure, Failed) => Intent::DeleteThenStart,

        (RunStrategy::Manual, Absent) if now.start.is_some() => create(now),
        (RunStrategy::Manual, Absent) => Intent::Keep,
        (RunStrategy::Manual, Active | Succeeded | Failed) => delete_if(now.stop),

        (RunStrategy::Halted, Absent) if now.start.is_some() => Intent::TurnOn,
        (RunStrategy::Halted, Absent) => Intent::Keep,
        (RunStrategy::Halted, Active | Succeeded | Failed) => Intent::Delete,

        (RunStrategy::Once, Absent) => create(now),
        (RunStrategy::Once, Active | Succeeded | Failed) => Intent::Keep,
    }
}

fn create(now: Situation) -> Intent {
    Intent::Create {
        paused: now.start.is_some_and(|order| order.paused),
    }
}

fn create_after_wait(now: Situation) -> Intent {
    now.wait.map_or_else(|| create(now), Intent::CreateLater)
}

fn delete_if(stop: bool) -> Intent {
    if stop { Intent::Delete } else { Intent::Keep }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{Intent::*, Presence::*, RunStrategy::*, *};

    const QUIET: Situation = Situation {
        vmi: Absent,
        stop: false,
        start: None,
        switched: false,
        wait: None,
    };
    const STARTED: Situation = Situation {
        start: Some(StartOrder { paused: false }),
        ..QUIET
    };
    const PAUSE: Duration = Duration::from_secs(12);
    const RUN: Intent = Create { paused: false };

    fn at(vmi: Presence) -> Situation {
        Situation { vmi, ..QUIET }
    }

    fn stopped(vmi: Presence) -> Situation {
        Situation {
            vmi,
            stop: true,
            ..QUIET
        }
    }

    #[rstest]
    #[case::starts(QUIET, RUN)]
    #[case::waits_after_a_failed_start(Situation { wait: Some(PAUSE), ..QUIET }, CreateLater(PAUSE))]
    #[case::starts_paused(Situation { start: Some(StartOrder { paused: true }), ..QUIET }, Create { paused: true })]
    #[case::keeps(at(Active), Keep)]
    #[case::restarts_on_order(stopped(Active), Delete)]
    #[case::power_off(at(Succeeded), Delete)]
    #[case::crash(at(Failed), Delete)]
    #[case::waits_for_the_end(at(Leaving), Keep)]
    fn always(#[case] now: Situation, #[case] want: Intent) {
        assert_eq!(intent(&Always, now), want);
    }

    #[rstest]
    #[case::first_start(Situation { switched: true, ..QUIET }, RUN)]
    #[case::start_order(STARTED, RUN)]
    #[case::start_order_waits(Situation { wait: Some(PAUSE), ..STARTED }, CreateLater(PAUSE))]
    #[case::stays_off(QUIET, Keep)]
    #[case::keeps(at(Active), Keep)]
    #[case::stop_order(stopped(Active), Delete)]
    #[case::power_off(at(Succeeded), Delete)]
    #[case::crash(at(Failed), DeleteThenStart)]
    #[case::stopped_and_failed(stopped(Failed), Delete)]
    #[case::deleted_by_hand(at(Leaving), Keep)]
    fn rerun_on_failure(#[case] now: Situation, #[case] want: Intent) {
        assert_eq!(intent(&RerunOnFailure, now), want);
    }

    #[rstest]
    #[case::stays_off(QUIET, Keep)]
    #[case::start_order(STARTED, RUN)]
    #[case::no_wait(Situation { wait: Some(PAUSE), ..STARTED }, RUN)]
    #[case::keeps(at(Active), Keep)]
    #[case::power_off(at(Succeeded), Keep)]
    #[case::crash(at(Failed), Keep)]
    #[case::stop_order(stopped(Active), Delete)]
    #[case::restart_of_a_final_one(stopped(Succeeded), Delete)]
    fn manual(#[case] now: Situation, #[case] want: Intent) {
        assert_eq!(intent(&Manual, now), want);
    }

    #[rstest]
    #[case::stays_off(QUIET, Keep)]
    #[case::start_order(STARTED, TurnOn)]
    #[case::stops(at(Active), Delete)]
    #[case::clears_away(at(Succeeded), Delete)]
    #[case::clears_away_failed(at(Failed), Delete)]
    #[case::waits_for_the_end(at(Leaving), Keep)]
    fn halted(#[case] now: Situation, #[case] want: Intent) {
        assert_eq!(intent(&Halted, now), want);
    }

    #[rstest]
    #[case::starts(QUIET, RUN)]
    #[case::no_wait(Situation { wait: Some(PAUSE), ..QUIET }, RUN)]
    #[case::keeps(at(Active), Keep)]
    #[case::power_off(at(Succeeded), Keep)]
    #[case::crash(at(Failed), Keep)]
    #[case::stop_is_not_its_word(stopped(Active), Keep)]
    fn once(#[case] now: Situation, #[case] want: Intent) {
        assert_eq!(intent(&Once, now), want);
    }

    #[test]
    fn an_unknown_word_does_nothing() {
        assert_eq!(intent(&Other("Sometimes".to_owned()), QUIET), Unsupported);
    }
}
