//! `verify`: a report is derived again from its journal and compared. Needs no cluster and no network.

use anyhow::Context as _;
use conformance_report::{ExitCode, verify, verify::exit};

use crate::{
    cli::VerifyArgs,
    folder::Folder,
    printer::Printer,
    problem::{Outcome, Problem},
    suite,
};

pub(super) fn run(args: &VerifyArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let folder = Folder::open(&args.run);
    let read = |file: std::path::PathBuf| {
        std::fs::read_to_string(&file)
            .with_context(|| format!("failed to read {}", file.display()))
            .map_err(|error| Problem::new(ExitCode::NotGenuine, error))
    };
    let findings = verify(&library, &read(folder.report())?, &read(folder.journal())?);
    for finding in &findings {
        let word = if finding.wrong.is_empty() {
            "ok   "
        } else {
            "WRONG"
        };
        printer.data(&format!("{word} {}", finding.step));
        for line in &finding.wrong {
            printer.data(&format!("        {line}"));
        }
    }
    Ok(exit(&findings))
}
