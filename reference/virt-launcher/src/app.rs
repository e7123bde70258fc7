//! Puts the launcher together, and takes it apart when the machine has ended.

use std::{
    backtrace::Backtrace,
    fs, io, panic,
    path::{Path, PathBuf},
    process::{self, ExitCode},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::{
    net::UnixListener,
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tracing_subscriber::EnvFilter;
use virt_cmd::{DomainState, paths::LauncherPaths, proto::launcher_server::LauncherServer, socket};

use crate::{
    args::Args,
    conductor::{Conductor, INPUT_BACKLOG, Input, Workshop},
    output::{self, Printer},
    reaper::Reaper,
    serial,
    server::Service,
    supervisor::{Command, Supervisor},
    verdict,
};

/// Owner and group: the handler is root, nobody else has business here.
const SOCKET_MODE: u32 = 0o660;
/// How long the last answers, console bytes and log lines may take.
const PARTING: Duration = Duration::from_secs(1);

/// Runs the launcher and turns what happened into its exit code.
pub(crate) fn main(args: Args) -> ExitCode {
    leave_a_last_word(args.termination_log.clone());
    let log = args.termination_log.clone();
    let printer = match Printer::start() {
        Ok(printer) => printer,
        Err(error) => return fail(&log, &format!("failed to start the output thread: {error}")),
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(printer.clone())
        .init();
    let code = match run(args, printer.clone()) {
        Ok(state) => verdict::leave(&state, &log),
        Err(error) => fail(&log, &format!("virt-launcher cannot work: {error:#}")),
    };
    printer.flush(PARTING);
    code
}

/// Everything is done on this one thread; only virtual processors and the output have their own.
fn run(args: Args, printer: Printer) -> Result<DomainState> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("failed to start the runtime")?;
    let state = runtime.block_on(serve(args, printer))?;
    // A machine that could not be stopped must not keep the process.
    runtime.shutdown_timeout(PARTING);
    Ok(state)
}

async fn serve(args: Args, printer: Printer) -> Result<DomainState> {
    let paths = args.paths();
    prepare(&paths)?;
    let listen = |path: PathBuf| {
        socket::listen(&path, SOCKET_MODE)
            .with_context(|| format!("failed to listen at {}", path.display()))
    };
    let (port, hub) = serial::port();
    let console = tokio::spawn(serial::console::serve(
        listen(paths.serial_console())?,
        hub.clone(),
    ));
    let workshop = Workshop {
        kvm: args.kvm.clone(),
        qemu: args.qemu.clone(),
        allow_emulation: args.allow_emulation,
        scratch: paths.ephemeral_dir().to_owned(),
        reaper: Reaper::start().context("failed to watch for dead children")?,
        printer,
        hub: hub.clone(),
        port: Some(port),
    };
    let inputs = mpsc::channel(INPUT_BACKLOG);
    let sender = inputs.0.clone();
    tokio::spawn(obey_signals(end_signals()?, args.grace(), sender.clone()));
    let supervisor = Supervisor::new(args.uid.clone());
    let conductor = Conductor::new(supervisor, workshop, inputs, paths.state_file());
    let board = conductor.board();

    let service = Service {
        vmi_uid: args.uid.clone(),
        inputs: sender,
        board: board.clone(),
    };
    let stop = CancellationToken::new();
    let server = answer_calls(listen(paths.command_socket())?, service, stop.clone());
    tracing::info!(
        name = args.name,
        namespace = args.namespace,
        uid = args.uid,
        "ready for orders"
    );
    let state = conductor.run().await;

    hub.close();
    board.close();
    stop.cancel();
    if timeout(PARTING, server).await.is_err() {
        tracing::debug!("a caller does not hang up");
    }
    console.abort();
    Ok(state)
}

/// The pod's volumes exist already; elsewhere they are made.
fn prepare(paths: &LauncherPaths) -> Result<()> {
    for directory in paths.directories() {
        fs::create_dir_all(directory)
            .with_context(|| format!("failed to make {}", directory.display()))?;
    }
    Ok(())
}

fn answer_calls(
    listener: UnixListener,
    service: Service,
    stop: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let served = Server::builder()
            .add_service(LauncherServer::new(service))
            .serve_with_incoming_shutdown(UnixListenerStream::new(listener), stop.cancelled())
            .await;
        if let Err(error) = served {
            tracing::error!(%error, "the command server failed");
        }
    })
}

fn end_signals() -> Result<[Signal; 2]> {
    let listen = |kind| signal(kind).context("failed to watch for signals");
    Ok([
        listen(SignalKind::terminate())?,
        listen(SignalKind::interrupt())?,
    ])
}

/// The kubelet ends a pod by SIGTERM: the guest gets its grace period.
async fn obey_signals(
    [mut terminate, mut interrupt]: [Signal; 2],
    grace: Duration,
    inputs: mpsc::Sender<Input>,
) {
    loop {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("asked to end by SIGTERM"),
            _ = interrupt.recv() => tracing::info!("asked to end by SIGINT"),
        }
        let command = Command::Shutdown { grace };
        if inputs
            .send(Input::Command {
                command,
                reply: None,
            })
            .await
            .is_err()
        {
            return;
        }
    }
}

/// A broken invariant ends the process at once, but not silently.
fn leave_a_last_word(termination_log: PathBuf) {
    panic::set_hook(Box::new(move |panic| {
        let line = format!("virt-launcher hit a bug and stops: {panic}").replace('\n', " ");
        output::last_word(&format!("{line}\n{}", Backtrace::capture()));
        let _ = fs::write(&termination_log, &line);
        process::abort();
    }));
}

fn fail(termination_log: &Path, message: &str) -> ExitCode {
    output::last_word(message);
    let written: io::Result<()> = fs::write(termination_log, message);
    if let Err(error) = written {
        output::last_word(&format!(
            "failed to write {}: {error}",
            termination_log.display()
        ));
    }
    ExitCode::from(verdict::EXIT_LAUNCHER_ERROR)
}
