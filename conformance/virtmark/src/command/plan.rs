//! `plan`: what a run would do. No row of it is ever a pass, and no verifier takes it for a report.

use std::fmt::Write as _;

use conformance_report::{ExitCode, plan::plan};

use crate::{
    cli::{Output, PlanArgs},
    command::{json, select::select},
    printer::Printer,
    problem::Outcome,
    suite,
};

pub(super) fn run(args: &PlanArgs, printer: &Printer) -> Outcome {
    let library = suite::load_sound(&args.suite)?;
    let selected = select(&library, &args.select)?;
    let plan = plan(&library, &selected);
    match args.output {
        Output::Json => printer.data(&json(&plan)?),
        Output::Table => {
            let mut text = String::new();
            for row in &plan.rows {
                let alone = if row.alone { "alone" } else { "" };
                let namespace = format!("vmk-<run>-{}", row.id.to_ascii_lowercase());
                // Writing to a String cannot fail.
                let _ = writeln!(
                    text,
                    "planned  {:<14} {alone:<6} {namespace:<28} {}",
                    row.id, row.title
                );
            }
            printer.data(&text);
        }
    }
    printer.say(&format!(
        "{} scenario(s) would run; nothing was done",
        plan.rows.len()
    ));
    Ok(if plan.rows.is_empty() {
        ExitCode::NothingRan
    } else {
        ExitCode::Holds
    })
}
