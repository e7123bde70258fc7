//! `run`: look around, play the selection, judge the journal, write the reports.

mod job;

use std::{fs::File, io::BufWriter, sync::Arc, time::Duration};

use anyhow::Context as _;
use conformance_engine::{
    Cleanup, Facts, Manner, NotReady, Recorder, Settings, Shared, Summary, Target, Wire, connect,
    preflight,
};
use conformance_journal::{Event, Pace, entry::Mode};
use conformance_judge::Limits;
use conformance_report::{ExitCode, exit, exit::Asked};
use conformance_scenario::{
    Library,
    spec::{Class, Platform},
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{CleanupWord, RunArgs},
    command::{report, select::select},
    folder::Folder,
    printer::Printer,
    problem::{Outcome, Problem},
    progress::listener,
    suite,
};

/// One call to the API server may take this long: admission webhooks have ten seconds of their own.
const CALL: Duration = Duration::from_secs(30);

pub(super) fn run(args: &RunArgs, printer: &Printer) -> Outcome {
    let library = suite::load_sound(&args.suite)?;
    let platform = suite::platform(&library, &args.platform)?;
    if !library
        .spec
        .profiles
        .iter()
        .any(|profile| profile.name == args.profile)
    {
        let text = format!("there is no profile {}", args.profile);
        return Err(Problem::text(ExitCode::UnknownName, text)
            .remedy("`virtmark list profiles` prints them"));
    }
    if !(1.0..=1000.0).contains(&args.timeout_scale) {
        return Err(Problem::text(
            ExitCode::Usage,
            "--timeout-scale must be between 1 and 1000",
        ));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    // A second provider in the process would be a fault of ours; the first one stays then.
    let _ = rustls::crypto::ring::default_provider().install_default();
    runtime.block_on(go(args, library, platform, printer))
}

async fn go(args: &RunArgs, library: Library, platform: Platform, printer: &Printer) -> Outcome {
    let selected = select(&library, &args.select)?;
    if selected.is_empty() {
        return Err(
            Problem::text(ExitCode::NothingRan, "the selection is empty")
                .remedy("`virtmark list` shows what a filter selects"),
        );
    }
    let target = Target {
        kubeconfig: args.kubeconfig.clone(),
        context: args.context.clone(),
    };
    let client = connect(&target).await.map_err(|error| {
        let hints = platform.kubeconfig_hints.join(", ");
        Problem::new(ExitCode::Environment, error)
            .remedy(format!("name one with --kubeconfig; usual places: {hints}"))
    })?;
    let wire = Wire::new(client, CALL);
    let facts = preflight::look(&wire, &platform).await.map_err(not_ready)?;
    remark(&facts, printer);
    let jobs = job::jobs(&selected, &facts, &platform, &args.skips)?;
    let run = name_of_run();
    let unwritable = |error: std::io::Error| Problem::new(ExitCode::ReportNotWritten, error);
    let folder = Folder::create(args.save.as_deref(), &run).map_err(unwritable)?;
    let journal = File::create(folder.journal()).map_err(unwritable)?;
    let recorder = Recorder::new(Box::new(BufWriter::new(journal)), &run);
    let pace = Pace {
        max: args.timeout_scale.max(Pace::default().max),
        ..Pace::uniform(
            args.timeout_scale,
            Class::ALL.iter().map(ToString::to_string),
        )
    };
    recorder.write(Event::RunStart {
        suite: env!("CARGO_PKG_VERSION").to_owned(),
        scenarios_digest: library.digest(),
        argv: std::env::args().skip(1).collect(),
        seed: 0,
        mode: Mode::Run,
        claims: facts.claims.clone(),
    });
    recorder.write(Event::Env {
        pace: pace.clone(),
        facts: facts.to_json(&platform),
    });
    let limits = Limits {
        timeouts: library.spec.timeouts.clone(),
        pace,
    };
    let library = Arc::new(library);
    let stop = CancellationToken::new();
    let shared = Shared {
        run,
        library: library.clone(),
        platform: Arc::new(platform),
        wire,
        limits: Arc::new(limits),
        listener: Arc::from(listener(args.progress, jobs.len(), printer)),
        stop: stop.clone(),
    };
    let interrupt = tokio::spawn(interrupted(stop, printer.clone()));
    let summary =
        conformance_engine::run(shared, recorder.clone(), jobs, settings(args, &folder)).await;
    interrupt.abort();
    finish(args, &library, &folder, &recorder, summary, printer)
}

fn finish(
    args: &RunArgs,
    library: &Library,
    folder: &Folder,
    recorder: &Recorder,
    summary: Summary,
    printer: &Printer,
) -> Outcome {
    if let Some(why) = recorder.failure() {
        return Err(Problem::text(
            ExitCode::ReportNotWritten,
            format!("the journal is not whole: {why}"),
        ));
    }
    let report = report::write(library, folder)?;
    report::show(&report, args.output, folder, printer)?;
    if summary.interrupted {
        printer.say("interrupted: what was not finished counts as not known");
    }
    let whole = args.select.filter.is_none() && args.select.ids.is_empty();
    let asked = if whole {
        Asked::Profile(args.profile.clone())
    } else {
        Asked::Selection
    };
    Ok(exit::of_run(&report, &asked))
}

fn settings(args: &RunArgs, folder: &Folder) -> Settings {
    let cleanup = match args.cleanup {
        Some(CleanupWord::Always) => Cleanup::Always,
        Some(CleanupWord::OnSuccess) => Cleanup::OnSuccess,
        Some(CleanupWord::Never) => Cleanup::Never,
        // Whoever runs one scenario wants to look at what it left when it fails.
        None if args.select.ids.len() == 1 => Cleanup::OnSuccess,
        None => Cleanup::Always,
    };
    Settings {
        jobs: args.jobs,
        fail_fast: args.fail_fast,
        manner: Manner {
            cleanup,
            evidence: Some(folder.evidence()),
        },
    }
}

/// The first interrupt ends the run in good order, objects deleted; a second one ends the program.
async fn interrupted(stop: CancellationToken, printer: Printer) {
    if asked_to_end().await.is_ok() {
        printer.say("stopping: objects are being deleted; once more to leave them");
        stop.cancel();
    }
    if asked_to_end().await.is_ok() {
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .ok();
    }
}

/// By a person at a terminal, or by whatever supervises us.
async fn asked_to_end() -> std::io::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupt = tokio::signal::ctrl_c() => interrupt,
        _ = terminate.recv() => Ok(()),
    }
}

fn not_ready(error: NotReady) -> Problem {
    let remedy = error.remedy();
    Problem::new(ExitCode::Environment, error).remedy(remedy)
}

/// Things that make failures likely; scenarios say for themselves what they need.
fn remark(facts: &Facts, printer: &Printer) {
    if !facts.nodes.iter().any(|node| node.schedulable) {
        printer.say("no node carries kubevirt.io/schedulable=true: guests will not start");
    }
    if let Some(phase) = facts
        .platform_phase
        .as_deref()
        .filter(|phase| *phase != "Deployed")
    {
        printer.say(&format!(
            "the platform says that it is {phase}, not Deployed"
        ));
    }
}

/// Short, sorted by time, fit for a namespace.
fn name_of_run() -> String {
    let now = jiff::Zoned::now();
    let unique = now.timestamp().subsec_nanosecond().unsigned_abs() ^ std::process::id();
    format!("{}-{:04x}", now.strftime("%y%m%d-%H%M%S"), unique & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_has_a_name_that_fits_a_namespace() {
        let name = name_of_run();
        assert_eq!(name.len(), "261201-014546-ab12".len());
        assert!(
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        );
    }
}
