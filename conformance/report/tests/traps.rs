//! Traps that need no cluster: ways in which a suite could show green without having shown anything.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

use conformance_journal::{
    Event, Journal, Pace, Stamp, Writer,
    entry::{Change, ConsoleWhat, Mode, Outcome, Phase, ScenarioOutcome},
};
use conformance_judge::{Blame, Status, unstarted};
use conformance_report::{
    Asked, ConformanceReport, ExitCode, Word, claim, exit, html, junit, plan, report, table, verify,
};
use conformance_scenario::Library;
use rstest::rstest;
use serde_json::{Value, json};

const SCENARIO: &str = "
apiVersion: virtmark.dev/v1
kind: Scenario
metadata: {id: VM-LIFE-0001, title: a pod is seen <running>, since: '0.1'}
spec:
  clauses: [VM-LIFE-R001]
  level: MUST
  feature: Life
  record: [{kind: Pod}]
  steps:
    - {id: s1, get: {kind: Pod, name: p}}
  assertions:
    - id: a1
      clause: VM-LIFE-R001
      after: s1
      eventually: {object: {kind: Pod, name: p}, match: {status: {phase: Running}}}
      within: {class: pod}
      mutants: [M-001]
";

const MUTANTS: &str = "
mutants:
  - id: M-001
    breaks: it is never seen running
    edits: [drop: {object: {kind: Pod}}]
";

const FEATURES: &str = "
features:
  - {name: Life, level: core, since: '0.1', about: a}
  - {name: Empty, level: extended, since: '0.1', about: b}
";

/// A small library; `features` are those of the profile `p`.
fn library(features: &[&str]) -> Library {
    let tree = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let file = tree.path().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    std::fs::create_dir_all(tree.path().join("scenarios/templates")).unwrap();
    std::fs::create_dir_all(tree.path().join("spec/platforms")).unwrap();
    write("scenarios/VM-LIFE-0001.yaml", SCENARIO);
    write("spec/mutants.yaml", MUTANTS);
    write(
        "spec/clauses/life.yaml",
        "clauses: [{id: VM-LIFE-R001, level: MUST, text: t, since: '0.1', feature: Life}]",
    );
    write("spec/features.yaml", FEATURES);
    write(
        "spec/profiles/p.yaml",
        &format!("name: p\nabout: a\nfeatures: [{}]\n", features.join(", ")),
    );
    let classes = [
        "api",
        "admission",
        "pod",
        "boot",
        "shutdown",
        "delete",
        "settle",
    ];
    let rows: String = classes
        .iter()
        .map(|class| format!("  {class}: {{nominal: 1s, hard: 5s}}\n"))
        .collect();
    write("spec/timeouts.yaml", &format!("classes:\n{rows}"));
    Library::load(&tree.path().join("scenarios"), &tree.path().join("spec"))
        .unwrap_or_else(|error| panic!("{:#?}", error.errors))
}

/// What happened to the one scenario.
#[derive(Clone, Copy)]
enum Happened {
    Ran(&'static str),
    Ended(ScenarioOutcome),
    NotStarted,
}

fn journal_text(library: &Library, happened: Happened, mode: Mode, with_end: bool) -> String {
    let mut writer = Writer::new(Vec::new(), "run-1");
    let mut put = |millis: u64, scenario: Option<&str>, event: Event| {
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        writer
            .append(
                Stamp {
                    t: millis * 1_000_000,
                    wall,
                },
                scenario,
                event,
            )
            .unwrap();
    };
    let id = Some("VM-LIFE-0001");
    put(
        0,
        None,
        Event::RunStart {
            suite: "0.1.0".into(),
            scenarios_digest: library.digest(),
            argv: vec!["run".into()],
            seed: 1,
            mode,
            claims: vec!["Life".into()],
        },
    );
    put(
        0,
        None,
        Event::Env {
            pace: Pace::default(),
            facts: json!({"kubernetes": "v1.36.0"}),
        },
    );
    if !matches!(happened, Happened::NotStarted) {
        let digest = library.scenarios[0].digest.clone();
        put(
            1,
            id,
            Event::ScenarioStart {
                digest,
                namespace: Some("ns".into()),
            },
        );
    }
    match happened {
        Happened::Ran(phase) => {
            let step = |phase, outcome| Event::Step {
                step: "s1".into(),
                phase,
                outcome,
                detail: None,
            };
            let resource_version = "1".to_owned();
            put(
                2,
                id,
                Event::Watch {
                    kind: "Pod".into(),
                    namespace: None,
                    selector: None,
                    resource_version,
                },
            );
            put(3, id, step(Phase::Begin, None));
            put(
                4,
                id,
                Event::Response {
                    step: Some("s1".into()),
                    id: 1,
                    code: 200,
                    body: json!({}),
                    error: None,
                },
            );
            put(5, id, step(Phase::End, Some(Outcome::Ok)));
            let metadata = json!({"name": "p", "namespace": "ns"});
            let object = json!({"kind": "Pod", "metadata": metadata, "status": {"phase": phase}});
            put(
                300,
                id,
                Event::Observe {
                    change: Change::Added,
                    kind: "Pod".into(),
                    object,
                },
            );
            let line = |what, text: &str| Event::Console {
                vmi: "vm".into(),
                client: "main".into(),
                what,
                text: text.into(),
            };
            put(310, id, line(ConsoleWhat::Received, "guest says <hello>"));
            let content = json!("a line of the log");
            put(
                400,
                id,
                Event::Evidence {
                    name: "podLogs/p".into(),
                    content,
                },
            );
            put(
                9_000,
                id,
                Event::ScenarioEnd {
                    outcome: ScenarioOutcome::Completed,
                    reason: None,
                },
            );
        }
        Happened::Ended(outcome) => put(
            9,
            id,
            Event::ScenarioEnd {
                outcome,
                reason: Some("because".into()),
            },
        ),
        Happened::NotStarted => {}
    }
    put(
        9_001,
        None,
        Event::Cleanup {
            created: 2,
            leaked: vec![],
        },
    );
    if with_end {
        put(9_002, None, Event::RunEnd { scenarios: 1 });
    }
    String::from_utf8(writer.into_inner()).unwrap()
}

fn derived(library: &Library, happened: Happened) -> ConformanceReport {
    report::derive(
        library,
        &Journal::parse(&journal_text(library, happened, Mode::Run, true)).unwrap(),
    )
}

fn of_profile() -> Asked {
    Asked::Profile("p".to_owned())
}

#[rstest]
#[case::passed(Happened::Ran("Running"), Word::Conformant, ExitCode::Holds)]
#[case::failed(Happened::Ran("Pending"), Word::NonConformant, ExitCode::Failed)]
#[case::nothing_selected(Happened::NotStarted, Word::Incomplete, ExitCode::NothingRan)]
#[case::all_skipped_by_hand(
    Happened::Ended(ScenarioOutcome::Skipped),
    Word::Incomplete,
    ExitCode::Failed
)]
#[case::prerequisite_missing(
    Happened::Ended(ScenarioOutcome::Blocked),
    Word::NonConformant,
    ExitCode::Failed
)]
#[case::not_claimed(
    Happened::Ended(ScenarioOutcome::NotApplicable),
    Word::Incomplete,
    ExitCode::NothingRan
)]
#[case::engine_gave_up(
    Happened::Ended(ScenarioOutcome::Aborted),
    Word::Inconclusive,
    ExitCode::HarnessFault
)]
fn nothing_is_green_unless_it_was_shown(
    #[case] happened: Happened,
    #[case] word: Word,
    #[case] code: ExitCode,
) {
    let report = derived(&library(&["Life"]), happened);
    assert_eq!(report.profiles[0].verdict, word);
    assert_eq!(exit::of_run(&report, &of_profile()), code);
    assert_eq!(exit::of_run(&report, &Asked::Selection), code);
}

#[rstest]
#[case::without_scenario(&["Life", "Empty"])]
#[case::unknown(&["Life", "Nope"])]
fn a_feature_that_nothing_shows_is_incomplete(#[case] features: &[&str]) {
    let report = derived(&library(features), Happened::Ran("Running"));
    assert_eq!(report.profiles[0].verdict, Word::Incomplete);
    assert!(
        report.profiles[0]
            .missing
            .iter()
            .any(|line| line.contains(features[1]))
    );
    assert_eq!(exit::of_run(&report, &of_profile()), ExitCode::Failed);
}

#[test]
fn a_claim_of_an_unknown_feature_is_incomplete() {
    let library = library(&["Life"]);
    let verdicts = derived(&library, Happened::Ran("Running")).results;
    let standing = claim::Standing {
        is_run: true,
        interrupted: false,
    };
    let claims = ["Life".to_owned(), "Nope".to_owned()];
    let result = claim::profile(
        &library,
        &library.spec.profiles[0],
        &claims,
        &verdicts,
        standing,
    );
    assert_eq!(result.verdict, Word::Incomplete);
}

#[test]
fn an_unknown_profile_never_holds() {
    let report = derived(&library(&["Life"]), Happened::Ran("Running"));
    assert_eq!(
        exit::of_run(&report, &Asked::Profile("nope".to_owned())),
        ExitCode::Failed
    );
}

#[test]
fn an_interrupted_run_is_no_success() {
    let library = library(&["Life"]);
    let text = journal_text(&library, Happened::Ran("Running"), Mode::Run, false);
    let report = report::derive(&library, &Journal::parse(&text).unwrap());
    assert_eq!(report.profiles[0].verdict, Word::Incomplete);
    assert_eq!(exit::of_run(&report, &of_profile()), ExitCode::Interrupted);
    assert_eq!(
        exit::of_run(&report, &Asked::Selection),
        ExitCode::Interrupted
    );
}

#[rstest]
#[case::plan(Mode::Plan)]
#[case::converted(Mode::Converted)]
fn only_a_run_carries_a_claim(#[case] mode: Mode) {
    let library = library(&["Life"]);
    let text = journal_text(&library, Happened::Ran("Running"), mode, true);
    let report = report::derive(&library, &Journal::parse(&text).unwrap());
    assert_eq!(report.profiles[0].verdict, Word::Incomplete);
    assert_ne!(exit::of_run(&report, &of_profile()), ExitCode::Holds);
}

#[test]
fn an_unexpected_pass_fails() {
    let mut report = derived(&library(&["Life"]), Happened::Ran("Running"));
    report.results[0].status = Status::UnexpectedPass;
    assert_eq!(exit::of_run(&report, &Asked::Selection), ExitCode::Failed);
}

#[test]
fn our_own_fault_goes_before_the_platforms() {
    let library = library(&["Life"]);
    let mut report = derived(&library, Happened::Ran("Pending"));
    let mut error = unstarted(&library.scenarios[0].value, Status::Error, "broken");
    report.results.push(error.clone());
    assert_eq!(
        exit::of_run(&report, &Asked::Selection),
        ExitCode::HarnessFault
    );
    error.blame = Some(Blame::Environment);
    report.results[1] = error;
    assert_eq!(
        exit::of_run(&report, &Asked::Selection),
        ExitCode::Environment
    );
}

fn written(library: &Library) -> (String, String) {
    let journal = journal_text(library, Happened::Ran("Running"), Mode::Run, true);
    let report = report::derive(library, &Journal::parse(&journal).unwrap());
    (serde_json::to_string_pretty(&report).unwrap(), journal)
}

#[test]
fn a_genuine_report_verifies() {
    let library = library(&["Life"]);
    let (report, journal) = written(&library);
    let findings = verify(&library, &report, &journal);
    assert!(
        findings.iter().all(|finding| finding.wrong.is_empty()),
        "{findings:#?}"
    );
    assert_eq!(verify::exit(&findings), ExitCode::Holds);
}

fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| places(value, &format!("{at}/{key}"), found)),
        Value::Array(list) => {
            list.iter()
                .enumerate()
                .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

#[test]
fn every_changed_value_of_a_report_is_found() {
    let library = library(&["Life"]);
    let (report, journal) = written(&library);
    let genuine: Value = serde_json::from_str(&report).unwrap();
    let mut found = Vec::new();
    places(&genuine, "", &mut found);
    assert!(found.len() > 40);
    for place in found {
        let mut forged = genuine.clone();
        let value = forged.pointer_mut(&place).unwrap();
        *value = match &value {
            Value::String(text) => Value::String(format!("{text}x")),
            Value::Bool(flag) => Value::Bool(!*flag),
            Value::Number(number) => json!(number.as_f64().unwrap() + 1.0),
            _ => json!("forged"),
        };
        let findings = verify(&library, &forged.to_string(), &journal);
        assert_ne!(verify::exit(&findings), ExitCode::Holds, "{place}");
    }
}

#[rstest]
#[case::not_json("{")]
#[case::empty("{}")]
#[case::unknown_field(
    r#"{"apiVersion": "virtmark.dev/v1", "kind": "ConformanceReport", "extra": 1}"#
)]
fn what_is_no_report_is_refused(#[case] text: &str) {
    let library = library(&["Life"]);
    let (_, journal) = written(&library);
    assert_eq!(
        verify::exit(&verify(&library, text, &journal)),
        ExitCode::NotGenuine
    );
}

/// A dry run leaves nothing that a verifier takes.
#[test]
fn a_plan_is_no_report() {
    let library = library(&["Life"]);
    let (_, journal) = written(&library);
    let plan = plan::plan(&library, &library.select(None).unwrap());
    let findings = verify(&library, &serde_json::to_string(&plan).unwrap(), &journal);
    assert_eq!(verify::exit(&findings), ExitCode::NotGenuine);
}

#[rstest]
#[case::shortened(|journal: &str| journal.split_inclusive('\n').take(6).collect())]
#[case::edited(|journal: &str| journal.replace("Running", "Pending"))]
#[case::of_another_run(|_: &str| journal_text(&library(&["Life"]), Happened::Ran("Pending"), Mode::Run, true))]
fn another_history_is_found(#[case] change: fn(&str) -> String) {
    let library = library(&["Life"]);
    let (report, journal) = written(&library);
    assert_eq!(
        verify::exit(&verify(&library, &report, &change(&journal))),
        ExitCode::NotGenuine
    );
}

#[test]
fn a_swapped_scenario_is_found_by_name() {
    let library = library(&["Life"]);
    let (report, journal) = written(&library);
    let mut other = library.clone();
    other.scenarios[0].digest = "sha256:other".to_owned();
    let findings = verify(&other, &report, &journal);
    assert!(
        findings
            .iter()
            .flat_map(|finding| &finding.wrong)
            .any(|line| line.contains("VM-LIFE-0001"))
    );
    assert_eq!(verify::exit(&findings), ExitCode::NotGenuine);
}

#[test]
fn the_report_says_what_green_is_worth() {
    let worth = derived(&library(&["Life"]), Happened::Ran("Running")).sensitivity;
    assert_eq!(
        (
            worth.checks,
            worth.tried,
            worth.killed,
            worth.survivors.len()
        ),
        (1, 1, 1, 0)
    );
}

#[test]
fn readers_see_the_same_in_every_form() {
    let library = library(&["Life"]);
    let text = journal_text(&library, Happened::Ran("Pending"), Mode::Run, true);
    let journal = Journal::parse(&text).unwrap();
    let report = report::derive(&library, &journal);
    let look = table::Look {
        width: 100,
        colour: false,
    };
    let screen = format!(
        "{}\n{}\n{}",
        table::results(&report, look),
        table::failure(&report.results[0]),
        table::summary(&report)
    );
    insta::assert_snapshot!("screen", screen);
    insta::assert_snapshot!("junit", junit::junit(&report).unwrap());
    let page = html::html(&report, &journal).unwrap();
    for part in [
        "VM-LIFE-0001",
        "status.phase",
        "a pod is seen &#60;running&#62;",
        "Pod/p",
        "guest says &#60;hello&#62;",
        "podLogs/p",
        "a line of the log",
        "id=\"filter\"",
    ] {
        assert!(page.contains(part), "{part} is not on the page");
    }
    for outside in ["http://", "https://", "src=", "<link", "@import"] {
        assert!(
            !page.contains(outside),
            "the page reaches out with {outside}"
        );
    }
}

#[test]
fn skipped_scenarios_are_in_the_junit_file_too() {
    let report = derived(
        &library(&["Life"]),
        Happened::Ended(ScenarioOutcome::Skipped),
    );
    let xml = junit::junit(&report).unwrap();
    assert!(
        xml.contains("skipped=\"1\"") && xml.contains("because"),
        "{xml}"
    );
}

#[test]
fn the_shape_of_the_report_is_stable() {
    let report = derived(&library(&["Life"]), Happened::Ran("Running"));
    let mut value = serde_json::to_value(&report).unwrap();
    // Digests follow the text of the library; their places matter, not their values.
    for place in [
        "/suite/scenariosDigest",
        "/journal/head",
        "/results/0/digest",
    ] {
        *value.pointer_mut(place).unwrap() = json!("[digest]");
    }
    insta::assert_json_snapshot!(value);
}

#[rstest]
#[case(ExitCode::Holds, 0)]
#[case(ExitCode::Usage, 2)]
#[case(ExitCode::NothingRan, 4)]
#[case(ExitCode::Interrupted, 5)]
#[case(ExitCode::NotGenuine, 65)]
#[case(ExitCode::HarnessFault, 70)]
#[case(ExitCode::Inconclusive, 75)]
#[case(ExitCode::Versions, 92)]
#[case(ExitCode::UnknownName, 94)]
#[case(ExitCode::Environment, 96)]
#[case(ExitCode::Failed, 100)]
#[case(ExitCode::ReportNotWritten, 110)]
fn the_numbers_of_exit_codes_do_not_change(#[case] code: ExitCode, #[case] number: u8) {
    assert_eq!(code.code(), number);
}
