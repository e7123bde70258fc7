//! The committed library is clean, and each rule notices what it is for.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has to stop"
)]

use std::path::{Path, PathBuf};

use conformance_scenario::{
    Library,
    lint::{Problem, Severity, lint},
};
use rstest::rstest;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn committed() -> Library {
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

/// A tree with the committed data and one scenario, which is the committed start scenario with a change in its text.
fn with_change(from: &str, to: &str) -> (tempfile::TempDir, Library) {
    let tree = tempfile::tempdir().unwrap();
    let scenarios = tree.path().join("scenarios");
    std::fs::create_dir_all(scenarios.join("lifecycle")).unwrap();
    std::fs::create_dir_all(scenarios.join("templates")).unwrap();
    let template = "scenarios/templates/vm-probe.yaml";
    std::fs::copy(root().join(template), tree.path().join(template)).unwrap();
    let text =
        std::fs::read_to_string(root().join("scenarios/lifecycle/VM-LIFE-0001.yaml")).unwrap();
    assert!(text.contains(from), "the scenario no longer says {from:?}");
    std::fs::write(
        scenarios.join("lifecycle/VM-LIFE-0001.yaml"),
        text.replacen(from, to, 1),
    )
    .unwrap();
    let library =
        Library::load(&scenarios, &root().join("conformance/spec")).unwrap_or_else(|error| {
            panic!(
                "{}",
                error
                    .errors
                    .iter()
                    .map(|error| format!("{error}\n"))
                    .collect::<String>()
            )
        });
    (tree, library)
}

fn errors(problems: Vec<Problem>) -> Vec<Problem> {
    problems
        .into_iter()
        .filter(|problem| problem.severity == Severity::Error)
        .collect()
}

#[test]
fn the_committed_library_is_clean() {
    let problems: Vec<String> = lint(&committed()).iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[rstest]
#[case::file_name("id: VM-LIFE-0001", "id: VM-LIFE-0999", "L01")]
#[case::unknown_clause(
    "clauses: [VM-LIFE-R001,",
    "clauses: [VM-LIFE-R999, VM-LIFE-R001,",
    "L02"
)]
#[case::clause_not_listed("clauses: [VM-LIFE-R001, ", "clauses: [", "L02")]
#[case::no_mutant("mutants: [M-003, M-004]", "mutants: []", "L03")]
#[case::unknown_mutant("mutants: [M-003, M-004]", "mutants: [M-999]", "L03")]
#[case::mutant_without_check("- id: s2\n", "- id: s2\n      mutants: [M-001]\n", "L03")]
#[case::same_assertion_id("- id: a2", "- id: a1", "L05")]
#[case::step_and_assertion_id("- id: a2", "- id: s1", "L05")]
#[case::unknown_kind("{kind: Pod}", "{kind: Podd}", "L06")]
#[case::not_recorded("    - {kind: Pod}\n", "", "L06")]
#[case::unknown_moment("after: a1", "after: a9", "L07")]
#[case::no_moment("after: a1", "after: a5", "L07")]
#[case::waits_for_itself("after: s3\n      eventually", "after: a1\n      eventually", "L07")]
#[case::wrong_order("between: [start, end]", "between: [s3, s1]", "L07")]
#[case::unknown_feature("feature: VirtualMachineLifecycle", "feature: Nope", "L08")]
#[case::unbounded(
    "order: [Stopped, Starting, Running]\n        skippable: [Stopped]\n      within: {class: boot}",
    "order: [Stopped, Starting, Running]\n        skippable: [Stopped]",
    "L09"
)]
#[case::unknown_template("template: vm-probe.yaml", "template: nope.yaml", "L11")]
#[case::unknown_parameter("runStrategy: Halted}}", "runStrateggy: Halted}}", "L11")]
#[case::image_not_required("    - image: probe-kernel\n", "    - nodes: 1\n", "L11")]
#[case::no_control(
    "patch: {kind: VirtualMachine, name: vm, merge: {spec: {runStrategy: Always}}}",
    "patch: {kind: VirtualMachine, name: vm, merge: {spec: {runStrategy: Always}}}\n      clause: VM-LIFE-R001\n      \
     expectRejection: {code: 422, by: admission}\n      mutants: [M-018]",
    "L04"
)]
#[case::no_patch("name: vm, merge: {spec: {runStrategy: Always}}}", "name: vm}", "L12")]
fn each_rule_notices(#[case] from: &str, #[case] to: &str, #[case] rule: &str) {
    let (_tree, library) = with_change(from, to);
    // Clauses that only other scenarios test are missing here by construction.
    let found: Vec<Problem> = errors(lint(&library))
        .into_iter()
        .filter(|problem| problem.rule != "L10")
        .collect();
    assert!(
        found.iter().any(|problem| problem.rule == rule),
        "{found:#?}"
    );
}

/// Trap: a tab, or `Commands:` for `commands:`, and nothing may run.
#[rstest]
#[case::tab("  level: MUST", "\tlevel: MUST")]
#[case::wrong_case("  level: MUST", "  Level: MUST")]
#[case::unknown_word("- id: s2\n      waitFor:", "- id: s2\n      waitfor:")]
#[case::two_words("- id: s2\n", "- id: s2\n      get: {kind: Pod, name: x}\n")]
#[case::two_assertion_words("    - id: a2\n", "    - id: a2\n      never: {object: {kind: Pod}}\n")]
#[case::unknown_comparison("$present: true", "$presnt: true")]
#[case::duplicate_key("  level: MUST", "  level: MUST\n  level: MUST")]
#[case::yes_for_true("ready: true", "ready: true\n            n: {$present: yes}")]
#[case::unknown_class("within: {class: boot}", "within: {class: bot}")]
#[case::no_deadline(
    "      within: {class: boot}\n      mutants: [M-001, M-002]",
    "      mutants: [M-001, M-002]"
)]
fn a_file_that_is_not_understood_is_refused_with_its_line(#[case] from: &str, #[case] to: &str) {
    let text =
        std::fs::read_to_string(root().join("scenarios/lifecycle/VM-LIFE-0001.yaml")).unwrap();
    assert!(text.contains(from), "the scenario no longer says {from:?}");
    let tree = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(tree.path().join("templates")).unwrap();
    std::fs::write(
        tree.path().join("VM-LIFE-0001.yaml"),
        text.replacen(from, to, 1),
    )
    .unwrap();
    let error = Library::load(tree.path(), &root().join("conformance/spec")).unwrap_err();
    let [only] = &error.errors[..] else {
        panic!("{:#?}", error.errors)
    };
    let message = only.to_string();
    let place = message
        .split("VM-LIFE-0001.yaml:")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    assert!(
        place.is_some_and(|line| line.parse::<u32>().is_ok_and(|line| line > 0)),
        "{message}"
    );
}
