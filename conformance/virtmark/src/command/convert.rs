//! `convert`: watch files that something else recorded, told as a scenario's history.

use anyhow::Context as _;
use conformance_journal::convert::{Recording, convert, open_watch};
use conformance_report::ExitCode;
use conformance_scenario::yaml;

use crate::{
    cli::ConvertArgs,
    command::select::known,
    printer::Printer,
    problem::{Outcome, Problem},
    suite,
};

pub(super) fn run(args: &ConvertArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let broken = |error: anyhow::Error| Problem::new(ExitCode::NotGenuine, error);
    let recording: Recording = yaml::read(&args.recording)
        .and_then(|text| yaml::parse_words(&args.recording, &text))
        .map_err(|error| Problem::new(ExitCode::UnknownName, error))?;
    let loaded = known(&library, &recording.scenario)?;
    let mut watched = Vec::new();
    for file in &args.files {
        let lines =
            open_watch(file).with_context(|| format!("failed to convert {}", file.display()));
        watched.extend(lines.map_err(broken)?);
    }
    let journal = convert(&recording, &loaded.digest, watched)
        .context("failed to convert")
        .map_err(broken)?;
    std::fs::write(&args.output, &journal)
        .with_context(|| format!("failed to write {}", args.output.display()))
        .map_err(|error| Problem::new(ExitCode::ReportNotWritten, error))?;
    let lines = journal.lines().count();
    printer.say(&format!("{lines} lines in {}", args.output.display()));
    Ok(ExitCode::Holds)
}
