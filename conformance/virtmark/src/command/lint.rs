//! `lint`: what is wrong with scenarios and data files.

use conformance_report::ExitCode;
use conformance_scenario::lint::{Severity, lint};

use crate::{cli::LintArgs, printer::Printer, problem::Outcome, suite};

pub(super) fn run(args: &LintArgs, printer: &Printer) -> Outcome {
    let library = suite::load(&args.suite)?;
    let problems = lint(&library);
    for problem in &problems {
        printer.data(&problem.to_string());
    }
    let errors = problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error)
        .count();
    let warnings = problems.len() - errors;
    let scenarios = library.scenarios.len();
    printer.say(&format!(
        "{scenarios} scenarios, {errors} error(s), {warnings} warning(s)"
    ));
    Ok(if errors == 0 {
        ExitCode::Holds
    } else {
        ExitCode::UnknownName
    })
}
