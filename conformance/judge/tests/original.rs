//! The suite against something that is not ours: the scenarios judge the recorded history of the original KubeVirt.
//!
//! Each history must pass, and each of its mutants must be noticed by the very check that names it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

use std::path::{Path, PathBuf};

use conformance_journal::{
    Ending, Event, Journal,
    convert::{Came, Recording, Taken, convert, open_watch},
    entry::Mode,
};
use conformance_judge::{Limits, Status, judge, sensitivity};
use conformance_scenario::{Library, library::Loaded, model::Scenario};
use rstest::rstest;

struct Case {
    scenario: &'static str,
    file: &'static str,
    vm: &'static str,
    day: &'static str,
    from: &'static str,
    to: &'static str,
    steps: &'static [(&'static str, &'static str, Known)],
}

/// What the harness of that time knew of a step.
#[derive(Clone, Copy)]
enum Known {
    Answer(u16),
    Typed(&'static str, &'static str),
    Nothing,
}

const START: Case = Case {
    scenario: "VM-LIFE-0001",
    file: "start",
    vm: "demo",
    day: "2026-11-30T00:00:00Z",
    from: "23:57:11.700",
    to: "23:57:20.900",
    steps: &[
        ("s1", "23:57:11.720", Known::Answer(201)),
        ("s2", "23:57:11.740", Known::Nothing),
        ("s3", "23:57:11.930", Known::Answer(200)),
    ],
};

const STOP: Case = Case {
    scenario: "VM-LIFE-0002",
    file: "stop",
    vm: "q-always",
    day: "2026-12-01T00:00:00Z",
    from: "00:10:35.800",
    to: "00:10:56.100",
    steps: &[
        ("s1", "00:10:35.850", Known::Answer(201)),
        ("s2", "00:10:35.860", Known::Nothing),
        ("s3", "00:10:46.200", Known::Answer(202)),
    ],
};

const RESTART: Case = Case {
    scenario: "VM-LIFE-0003",
    file: "restart",
    vm: "demo",
    day: "2026-11-30T00:00:00Z",
    from: "23:58:50.000",
    to: "23:59:07.500",
    steps: &[
        ("s1", "23:58:50.000", Known::Answer(200)),
        ("s2", "23:58:50.001", Known::Nothing),
        ("s3", "23:58:55.230", Known::Answer(202)),
    ],
};

const POWER_OFF_ALWAYS: Case = Case {
    scenario: "VM-LIFE-0004",
    file: "poweroff-always",
    vm: "po-always",
    day: "2026-11-30T00:00:00Z",
    from: "23:41:38.750",
    to: "23:42:21.930",
    steps: &[
        ("s1", "23:41:38.760", Known::Answer(201)),
        ("s2", "23:41:38.770", Known::Nothing),
        // The guest's agent had answered by then: it was awake.
        ("s3", "23:41:55.000", Known::Typed("echo awake", "awake\n")),
        ("s4", "23:42:11.600", Known::Typed("poweroff", "")),
    ],
};

const POWER_OFF_RERUN_ON_FAILURE: Case = Case {
    scenario: "VM-LIFE-0005",
    file: "poweroff-rerunonfailure",
    vm: "po-rerunonfailure",
    day: "2026-11-30T00:00:00Z",
    from: "23:39:30.740",
    to: "23:40:19.600",
    steps: &[
        ("s1", "23:39:30.745", Known::Answer(201)),
        ("s2", "23:39:30.750", Known::Nothing),
        ("s3", "23:39:50.000", Known::Typed("echo awake", "awake\n")),
        ("s4", "23:40:07.050", Known::Typed("poweroff", "")),
    ],
};

const KILL: Case = Case {
    scenario: "VM-LIFE-0006",
    file: "kill-always",
    vm: "killq-always",
    day: "2026-11-30T00:00:00Z",
    from: "23:43:11.340",
    to: "23:43:36.200",
    steps: &[
        ("s1", "23:43:11.345", Known::Answer(201)),
        ("s2", "23:43:11.348", Known::Nothing),
        ("s3", "23:43:19.800", Known::Nothing),
    ],
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn library() -> Library {
    Library::load(&root().join("scenarios"), &root().join("conformance/spec")).unwrap_or_else(
        |error| {
            panic!(
                "{}",
                error
                    .errors
                    .iter()
                    .map(|error| format!("{error}\n"))
                    .collect::<String>()
            )
        },
    )
}

fn of_day(text: &str) -> u64 {
    let parts: Vec<u64> = text
        .split([':', '.'])
        .map(|part| part.parse().unwrap())
        .collect();
    (((parts[0] * 60 + parts[1]) * 60 + parts[2]) * 1000 + parts[3]) * 1_000_000
}

fn journal(case: &Case, scenario: &Loaded<Scenario>) -> Journal {
    let steps: Vec<Taken> = case
        .steps
        .iter()
        .map(|(step, at, known)| Taken {
            step: (*step).to_owned(),
            t: of_day(at),
            came: match known {
                Known::Answer(code) => Came::Answer(*code),
                Known::Typed(sent, heard) => Came::Talk {
                    vmi: "vm".to_owned(),
                    sent: (*sent).to_owned(),
                    heard: (*heard).to_owned(),
                },
                Known::Nothing => Came::Nothing,
            },
        })
        .collect();
    let recording = Recording {
        scenario: case.scenario,
        digest: &scenario.digest,
        namespace: "default",
        day: case.day.parse().unwrap(),
        vm: case.vm,
        steps: &steps,
        from: of_day(case.from),
        to: of_day(case.to),
    };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/original");
    let watched = open_watch(&fixtures.join(format!("{}.jsonl.zst", case.file))).unwrap();
    Journal::parse(&convert(&recording, watched).unwrap()).unwrap()
}

#[rstest]
#[case::start(START)]
#[case::stop(STOP)]
#[case::restart(RESTART)]
#[case::power_off_always(POWER_OFF_ALWAYS)]
#[case::power_off_rerun_on_failure(POWER_OFF_RERUN_ON_FAILURE)]
#[case::kill(KILL)]
fn the_original_passes_and_every_mutant_of_its_history_is_noticed(#[case] case: Case) {
    let library = library();
    let scenario = library.scenario(&case.scenario.parse().unwrap()).unwrap();
    let journal = journal(&case, scenario);
    assert_eq!(journal.ending, Ending::Complete);
    let limits = Limits::unscaled(library.spec.timeouts.clone());
    let verdict = judge(&scenario.value, &journal.entries, &limits);
    let wrong: Vec<String> = verdict
        .not_held()
        .map(|check| format!("{} {} {:#?}", check.id, check.status, check.explanation))
        .collect();
    assert_eq!(verdict.status, Status::Pass, "{}", wrong.join("\n"));

    let matrix = sensitivity(
        &scenario.value,
        &journal.entries,
        &limits,
        &library.spec.mutants,
    );
    let survivors: Vec<_> = matrix.survivors().collect();
    assert!(
        survivors.is_empty() && matrix.unproven.is_empty(),
        "{survivors:#?} {:?}",
        matrix.unproven
    );
    assert!(matrix.holds());
}

#[test]
fn a_converted_journal_never_passes_for_a_run() {
    let library = library();
    let scenario = library.scenario(&START.scenario.parse().unwrap()).unwrap();
    let journal = journal(&START, scenario);
    assert!(matches!(
        journal.entries[0].event,
        Event::RunStart {
            mode: Mode::Converted,
            ..
        }
    ));
}
