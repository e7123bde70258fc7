//! `report`: the reports of a run, made from its journal again. A run ends with the same.

use std::path::Path;

use anyhow::Context as _;
use conformance_journal::Journal;
use conformance_judge::Status;
use conformance_report::{
    ConformanceReport, ExitCode, exit, exit::Asked, html::html, junit::junit, report::derive, table,
};
use conformance_scenario::Library;

use crate::{
    cli::{Output, ReportArgs},
    command::json,
    folder::Folder,
    printer::Printer,
    problem::{Outcome, Problem},
    suite,
};

pub(super) fn run(args: &ReportArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let folder = Folder::open(&args.run);
    let report = write(&library, &folder)?;
    show(&report, args.output, &folder, printer)?;
    Ok(exit::of_run(&report, &Asked::Selection))
}

/// Derives everything from the journal and puts it beside it.
pub(super) fn write(library: &Library, folder: &Folder) -> Result<ConformanceReport, Problem> {
    let journal = open(folder)?;
    let report = derive(library, &journal);
    let wrong = |error: anyhow::Error| Problem::new(ExitCode::ReportNotWritten, error);
    put(&folder.report(), &json(&report)?).map_err(wrong)?;
    let xml = junit(&report)
        .context("failed to write JUnit")
        .map_err(wrong)?;
    put(&folder.junit(), &xml).map_err(wrong)?;
    let page = html(&report, &journal)
        .context("failed to write HTML")
        .map_err(wrong)?;
    put(&folder.html(), &page).map_err(wrong)?;
    Ok(report)
}

/// The journal of a run.
pub(super) fn open(folder: &Folder) -> Result<Journal, Problem> {
    let file = folder.journal();
    let shown = file.display().to_string();
    Journal::open(&file)
        .with_context(|| format!("failed to open the journal {shown}"))
        .map_err(|error| {
            let code = if file.exists() {
                ExitCode::NotGenuine
            } else {
                ExitCode::UnknownName
            };
            Problem::new(code, error).remedy(
                "name a run's folder or id; `latest` is the newest under target/conformance",
            )
        })
}

/// Shows a report.
pub(super) fn show(
    report: &ConformanceReport,
    output: Output,
    folder: &Folder,
    printer: &Printer,
) -> Result<(), Problem> {
    if output == Output::Json {
        printer.data(&json(report)?);
        return Ok(());
    }
    printer.data(&table::results(report, printer.look()));
    let bad = report.results.iter().filter(|verdict| {
        !matches!(
            verdict.status,
            Status::Pass | Status::Skipped | Status::NotApplicable | Status::ExpectedFail
        )
    });
    for verdict in bad {
        printer.data(&format!("\n{}", table::failure(verdict)));
    }
    printer.data(&format!("\n{}", table::summary(report)));
    printer.say(&format!("reports: {}", folder.html().display()));
    Ok(())
}

fn put(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("failed to write {}", file.display()))
}
