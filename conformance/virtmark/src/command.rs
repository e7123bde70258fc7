//! The subcommands, one file each. Each takes what was typed and gives an exit code.

mod convert;
mod explain;
mod lint;
mod list;
mod plan;
mod rbac;
mod report;
mod run;
mod select;
mod sensitivity;
mod verify;

use conformance_report::ExitCode;

use crate::{
    agent,
    cli::{AgentCommand, Cli, Command},
    printer::Printer,
    problem::{Outcome, Problem},
};

/// Does what was asked for.
pub(crate) fn dispatch(cli: Cli, printer: &Printer) -> Outcome {
    match cli.command {
        Command::List(args) => list::run(&args, printer),
        Command::Explain(args) => explain::run(&args, printer),
        Command::Lint(args) => lint::run(&args, printer),
        Command::Plan(args) => plan::run(&args, printer),
        Command::Run(args) => run::run(&args, printer),
        Command::Report(args) => report::run(&args, printer),
        Command::Verify(args) => verify::run(&args, printer),
        Command::Sensitivity(args) => sensitivity::run(&args, printer),
        Command::Convert(args) => convert::run(&args, printer),
        Command::Rbac(args) => rbac::run(&args, printer),
        Command::Agent(AgentCommand::KillMachine(args)) => {
            let line = agent::kill_machine(&args)
                .map_err(|error| Problem::new(ExitCode::Environment, error))?;
            printer.data(&line);
            Ok(ExitCode::Holds)
        }
    }
}

/// JSON for programs.
fn json(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string_pretty(value).map_err(|error| Problem::new(ExitCode::HarnessFault, error))
}
