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
    convert::{Recording, convert, open_watch},
    entry::Mode,
};
use conformance_judge::{Limits, Status, judge, sensitivity};
use conformance_scenario::{
    Library,
    library::Loaded,
    model::Scenario,
    yaml::{parse_words, read},
};
use rstest::rstest;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn library() -> Library {
    let root = here().join("../..");
    Library::load(&root.join("scenarios"), &root.join("conformance/spec")).unwrap_or_else(|error| {
        panic!(
            "{}",
            error
                .errors
                .iter()
                .map(|error| format!("{error}\n"))
                .collect::<String>()
        )
    })
}

/// A recorded history as a journal, with the scenario that it is told as.
fn told<'l>(library: &'l Library, name: &str) -> (&'l Loaded<Scenario>, Journal) {
    let fixture = here().join("tests/fixtures/original").join(name);
    let file = fixture.with_extension("yaml");
    let recording: Recording = parse_words(&file, &read(&file).unwrap()).unwrap();
    let scenario = library
        .scenario(&recording.scenario.parse().unwrap())
        .unwrap();
    let watched = open_watch(&fixture.with_extension("jsonl.zst")).unwrap();
    (
        scenario,
        Journal::parse(&convert(&recording, &scenario.digest, watched).unwrap()).unwrap(),
    )
}

#[rstest]
#[case("start")]
#[case("stop")]
#[case("restart")]
#[case("poweroff-always")]
#[case("poweroff-rerunonfailure")]
#[case("kill-always")]
fn the_original_passes_and_every_mutant_of_its_history_is_noticed(#[case] name: &str) {
    let library = library();
    let (scenario, journal) = told(&library, name);
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
    assert!(survivors.is_empty(), "{survivors:#?}");
    assert!(matrix.holds() && matrix.rows.len() >= scenario.value.spec.assertions.len());
}

#[test]
fn a_converted_journal_never_passes_for_a_run() {
    let library = library();
    let (_, journal) = told(&library, "start");
    assert!(matches!(
        journal.entries[0].event,
        Event::RunStart {
            mode: Mode::Converted,
            ..
        }
    ));
}
