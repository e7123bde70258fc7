//! What may be typed.

use std::{num::NonZeroUsize, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Tells whether a cluster keeps the promises of the KubeVirt API.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Examples:\n  virtmark run --kubeconfig ~/.kube/config\n  virtmark run --id VM-LIFE-0001\n  \
                  virtmark explain VM-LIFE-0001\n  virtmark report latest"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List scenarios, features, profiles, clauses or mutants
    List(ListArgs),
    /// Tell everything about one scenario
    Explain(ExplainArgs),
    /// Check scenarios and data files
    Lint(LintArgs),
    /// Tell what a run would do, and do nothing
    Plan(PlanArgs),
    /// Run scenarios against a cluster
    Run(Box<RunArgs>),
    /// Make the reports of a run again from its journal
    Report(ReportArgs),
    /// Check a report against its journal: derive it again and compare
    Verify(VerifyArgs),
    /// Break recorded histories on purpose and see which checks notice
    Sensitivity(SensitivityArgs),
    /// Turn watch files that something else recorded into a journal
    Convert(ConvertArgs),
    /// Print the rights that a run of the selection needs
    Rbac(PlanArgs),
    /// What helper pods of a run do
    #[command(hide = true, subcommand)]
    Agent(AgentCommand),
}

/// Where scenarios and data files come from.
#[derive(Debug, Clone, Args)]
pub(crate) struct SuiteArgs {
    /// Folder of scenarios instead of those inside the program
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) scenarios: Option<PathBuf>,
    /// Folder of clauses, features, mutants and times instead of those inside the program
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) spec: Option<PathBuf>,
}

/// Which scenarios.
#[derive(Debug, Clone, Args)]
pub(crate) struct SelectArgs {
    /// Only what this filter selects, such as 'feature(SerialConsole) & !tag(slow)'
    #[arg(short = 'E', long, value_name = "FILTER")]
    pub(crate) filter: Option<String>,
    /// Only this scenario; may be given several times
    #[arg(long = "id", value_name = "ID")]
    pub(crate) ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// What to list
    #[arg(value_enum, default_value = "scenarios")]
    pub(crate) what: Listed,
    /// How to print it
    #[arg(long, value_enum, default_value = "table")]
    pub(crate) format: ListFormat,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listed {
    Scenarios,
    Features,
    Profiles,
    Clauses,
    Mutants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListFormat {
    /// For people
    Table,
    /// For programs
    Json,
    /// Names only, one a line
    Ids,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The scenario, such as VM-LIFE-0001
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LintArgs {
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

/// How a run is done.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 the verdict holds, 4 nothing ran, 5 interrupted, 70 a fault of ours, \
                        75 inconclusive, 94 unknown name, 96 environment not ready, 100 not conformant, \
                        110 report not written\n\nExamples:\n  virtmark run --kubeconfig kubeconfig.yaml\n  \
                        virtmark run -E 'area(VM-SUB)' -j 2 --cleanup on-success"
)]
pub(crate) struct RunArgs {
    /// The cluster's kubeconfig; else $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// A context of the kubeconfig other than its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Leave a scenario out and say why; the verdict is incomplete then
    #[arg(long = "skip", value_name = "ID=REASON", value_parser = skip)]
    pub(crate) skips: Vec<(String, String)>,
    /// The profile whose verdict is asked for
    #[arg(long, value_name = "NAME", default_value = "vm-core")]
    pub(crate) profile: String,
    /// The adapter of the platform under test
    #[arg(long, value_name = "NAME", default_value = "reference")]
    pub(crate) platform: String,
    /// Scenarios at once
    #[arg(short, long, value_name = "N", default_value = "4")]
    pub(crate) jobs: NonZeroUsize,
    /// Multiply every time limit that is not the specification's own
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) timeout_scale: f64,
    /// When a scenario's objects are deleted; always, or on-success when one scenario was named
    #[arg(long, value_enum)]
    pub(crate) cleanup: Option<CleanupWord>,
    /// Begin no further scenario after so many failures
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", require_equals = true)]
    pub(crate) fail_fast: Option<NonZeroUsize>,
    /// What to show while it goes on
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) progress: ProgressWord,
    /// Folder of this run; target/conformance/<run> when not given
    #[arg(long, visible_alias = "artifacts", value_name = "DIR")]
    pub(crate) save: Option<PathBuf>,
    /// What to print at the end
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CleanupWord {
    Always,
    OnSuccess,
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressWord {
    /// A live view on a terminal, lines elsewhere
    Auto,
    /// One line per piece of news
    Lines,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run: its folder, its id, or latest
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// What to print; the files of the run are made again in any case
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The run: its folder, its id, or latest
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SensitivityArgs {
    /// The run: its folder, its id, or latest
    #[arg(default_value = "latest")]
    pub(crate) run: String,
    /// How to print it
    #[arg(short, long, value_enum, default_value = "table")]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  virtmark convert --recording stop.yaml -o stop.ndjson watch-vms.jsonl.zst watch-vmis.jsonl.zst"
)]
pub(crate) struct ConvertArgs {
    /// What is known about the recording: scenario, VM, time, steps
    #[arg(long, value_name = "FILE")]
    pub(crate) recording: PathBuf,
    /// The journal to write
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Watch files, .jsonl or .jsonl.zst
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) suite: SuiteArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Kill the machine process of a pod on this node
    KillMachine(KillArgs),
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The pod
    #[arg(long)]
    pub(crate) pod_uid: String,
    /// Names of the machine process, in the order they are tried
    #[arg(long = "process")]
    pub(crate) processes: Vec<String>,
}

fn skip(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((id, reason)) if !reason.trim().is_empty() => {
            Ok((id.to_owned(), reason.trim().to_owned()))
        }
        _ => Err("expected ID=REASON: a scenario is not left out without a reason".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn nothing_is_skipped_without_a_reason() {
        assert!(skip("VM-LIFE-0001").is_err() && skip("VM-LIFE-0001= ").is_err());
        assert_eq!(
            skip("VM-LIFE-0001=known"),
            Ok(("VM-LIFE-0001".into(), "known".into()))
        );
    }
}
