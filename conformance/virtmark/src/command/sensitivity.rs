//! `sensitivity`: recorded histories are broken in every way that the scenarios name; what no check notices is a survivor.

use std::fmt::Write as _;

use conformance_journal::{Event, Journal, Pace};
use conformance_judge::{Limits, Matrix, RowOutcome, Status, sensitivity};
use conformance_report::ExitCode;
use conformance_scenario::Library;

use crate::{
    cli::{Output, SensitivityArgs},
    command::{json, report},
    folder::Folder,
    printer::Printer,
    problem::Outcome,
    suite,
};

pub(super) fn run(args: &SensitivityArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let journal = report::open(&Folder::open(&args.run))?;
    let matrices = matrices(&library, &journal);
    match args.output {
        Output::Json => printer.data(&json(&matrices)?),
        Output::Table => printer.data(&table(&matrices)),
    }
    let passed = || {
        matrices
            .iter()
            .filter(|matrix| matrix.baseline == Status::Pass)
    };
    let rows: usize = passed().map(|matrix| matrix.rows.len()).sum();
    let survivors: usize = passed().map(|matrix| matrix.survivors().count()).sum();
    let left_out = matrices.len() - passed().count();
    printer.say(&format!(
        "{rows} pairs of check and mutant, {survivors} survivor(s); {left_out} scenario(s) did not pass and prove nothing"
    ));
    Ok(match (rows, survivors, left_out) {
        (0, _, _) => ExitCode::NothingRan,
        (_, 0, 0) => ExitCode::Holds,
        _ => ExitCode::Failed,
    })
}

/// One matrix per scenario that was played.
fn matrices(library: &Library, journal: &Journal) -> Vec<Matrix> {
    let pace = journal.entries.iter().find_map(|entry| match &entry.event {
        Event::Env { pace, .. } => Some(pace.clone()),
        _ => None,
    });
    let limits = Limits {
        timeouts: library.spec.timeouts.clone(),
        pace: pace.unwrap_or_else(Pace::default),
    };
    let played = |id: &str| {
        journal.entries.iter().any(|entry| {
            entry.scenario.as_deref() == Some(id)
                && matches!(
                    entry.event,
                    Event::ScenarioStart {
                        namespace: Some(_),
                        ..
                    }
                )
        })
    };
    (library.scenarios.iter())
        .filter(|loaded| played(loaded.value.id().as_str()))
        .map(|loaded| {
            let entries = journal.of_scenario(loaded.value.id().as_str());
            sensitivity(&loaded.value, &entries, &limits, &library.spec.mutants)
        })
        .collect()
}

fn table(matrices: &[Matrix]) -> String {
    let mut text = String::new();
    for matrix in matrices {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "{} ({})", matrix.scenario, matrix.baseline);
        for row in &matrix.rows {
            let outcome = match &row.outcome {
                RowOutcome::Killed => "killed".to_owned(),
                RowOutcome::Survived(status) => format!("SURVIVED: the check says {status}"),
                RowOutcome::NoEffect => "NO EFFECT: it found nothing to break".to_owned(),
                RowOutcome::Broken(why) => format!("BROKEN: {why}"),
            };
            let _ = writeln!(text, "  {:<32} {}  {outcome}", row.check, row.mutant);
        }
        for check in &matrix.unproven {
            let _ = writeln!(text, "  {check:<32} -      NO MUTANT");
        }
    }
    text
}
