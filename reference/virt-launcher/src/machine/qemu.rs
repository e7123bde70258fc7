//! The QEMU back end: a child process that is driven over QMP.
//!
//! QMP and the serial port are socket pairs that the child inherits as its standard input and output:
//! no names, no races, and they end with the process. The process outlives the guest
//! (`shutdown=pause`), so the cause of an end is always read before the process goes.

use std::{
    collections::VecDeque,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as StdStream},
    path::PathBuf,
    process::{Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures::FutureExt;
use thiserror::Error;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf, pipe},
    },
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    conductor::EventPort,
    machine::{Carried, Departure, Event, Machine, Order, OrderError},
    reaper::{Exit, Reaper, pid_of},
    serial::{GuestOutput, SerialPort},
};

pub(crate) mod args;
mod events;
mod qmp;

use events::{departure, event_of};
use qmp::{Qmp, QmpError, QmpEvent};

/// From the spawn to the first QMP answer; QEMU needs well under a second unless the host is drowning.
const START_WAIT: Duration = Duration::from_secs(30);
/// From `quit` to the end of the process.
const QUIT_WAIT: Duration = Duration::from_secs(5);
/// From the end of the connection to the end of the process, and for its last line to arrive.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// How much of QEMU's complaint is kept: the cause is often followed by advice.
const LAST_LINES: usize = 3;
const OWN_NAME: &str = "qemu-system-x86_64: ";

/// Everything about the process but the domain.
pub(crate) struct Recipe {
    /// The program.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) args: Vec<String>,
    /// Where it may keep what the guest writes to throw-away disks.
    pub(crate) scratch: PathBuf,
    /// Do not let the guest run yet.
    pub(crate) paused: bool,
}

/// Why QEMU did not start.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    /// The program cannot be executed.
    #[error("failed to execute {program}")]
    Spawn { program: PathBuf, source: io::Error },
    /// It ended before it was ready.
    #[error("QEMU did not start: {0}")]
    Died(String),
    /// It lives and does not answer.
    #[error("QEMU did not become ready within {} s", START_WAIT.as_secs())]
    Silent,
}

/// A running QEMU.
struct Qemu {
    qmp: Qmp,
    reaper: Reaper,
    pid: i32,
    /// An end of the process is what we asked for.
    dismissed: Arc<AtomicBool>,
}

/// Starts QEMU. [`Event::Started`] is sent before the guest runs, [`Event::Gone`] once the process has been
/// collected; after an error there is neither.
pub(crate) async fn start(
    recipe: Recipe,
    reaper: Reaper,
    serial: SerialPort,
    events: EventPort,
) -> Result<Box<dyn Machine>, StartError> {
    let mut child = spawn(&recipe, &reaper)?;
    let ready = async {
        let (qmp, from_qemu) = Qmp::greet(child.qmp).await?;
        let _ = events
            .send(Event::Started {
                paused: recipe.paused,
            })
            .await;
        if !recipe.paused {
            qmp.execute("cont").await?;
        }
        Ok::<_, QmpError>((qmp, from_qemu))
    };
    let (qmp, from_qemu) = match timeout(START_WAIT, ready).await {
        Ok(Ok(ready)) => ready,
        Ok(Err(error)) => {
            reaper.kill(child.pid);
            let _ = timeout(EXIT_WAIT, &mut child.exit).await;
            let said = child.last_words.wait().await;
            return Err(StartError::Died(if said.is_empty() {
                error.to_string()
            } else {
                said
            }));
        }
        Err(_) => {
            reaper.kill(child.pid);
            return Err(StartError::Silent);
        }
    };

    let (reader, writer) = child.serial.into_split();
    tokio::spawn(read_guest(reader, serial.output));
    tokio::spawn(write_guest(writer, serial.input));
    let machine = Qemu {
        qmp,
        reaper,
        pid: child.pid,
        dismissed: Arc::default(),
    };
    let dismissed = Arc::clone(&machine.dismissed);
    tokio::spawn(report(
        from_qemu,
        child.exit,
        child.last_words,
        dismissed,
        events,
    ));
    Ok(Box::new(machine))
}

struct Spawned {
    pid: i32,
    exit: oneshot::Receiver<Exit>,
    qmp: UnixStream,
    serial: UnixStream,
    last_words: LastWords,
}

fn spawn(recipe: &Recipe, reaper: &Reaper) -> Result<Spawned, StartError> {
    let failed = |source| StartError::Spawn {
        program: recipe.program.clone(),
        source,
    };
    let (qmp, qmp_of_child) = pair().map_err(failed)?;
    let (serial, serial_of_child) = pair().map_err(failed)?;
    let mut command = Command::new(&recipe.program);
    command
        .args(&recipe.args)
        .env_clear()
        .env("TMPDIR", &recipe.scratch)
        .stdin(Stdio::from(qmp_of_child))
        .stdout(Stdio::from(serial_of_child))
        .stderr(Stdio::piped());
    let mut running = reaper.spawn(&mut command).map_err(failed)?;
    let last_words =
        LastWords::listen(running.process.stderr.take().map(OwnedFd::from)).map_err(failed)?;
    tracing::info!(
        pid = running.process.id(),
        args = recipe.args.join(" "),
        "started {}",
        recipe.program.display()
    );
    Ok(Spawned {
        pid: pid_of(&running.process),
        exit: running.exit,
        qmp,
        serial,
        last_words,
    })
}

/// Our end for tokio, the child's end blocking as a program expects its standard streams.
fn pair() -> io::Result<(UnixStream, OwnedFd)> {
    let (ours, theirs) = StdStream::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs.into()))
}

impl Machine for Qemu {
    fn order(&mut self, order: Order) -> Carried {
        let qmp = self.qmp.clone();
        match order {
            Order::Pause => {
                async move { qmp.execute("stop").await.map_err(into_order_error) }.boxed()
            }
            Order::Resume => {
                async move { qmp.execute("cont").await.map_err(into_order_error) }.boxed()
            }
            Order::PowerButton => async move {
                qmp.execute("system_powerdown")
                    .await
                    .map_err(into_order_error)
            }
            .boxed(),
            Order::Reset => {
                async move { qmp.execute("system_reset").await.map_err(into_order_error) }.boxed()
            }
            Order::BootAgain => async move {
                qmp.execute("system_reset")
                    .await
                    .map_err(into_order_error)?;
                qmp.execute("cont").await.map_err(into_order_error)
            }
            .boxed(),
            Order::Dispose => {
                self.dismissed.store(true, Ordering::Relaxed);
                let (reaper, pid) = (self.reaper.clone(), self.pid);
                async move {
                    // The answer to `quit` may be lost with the connection; only the end of the process counts.
                    if timeout(QUIT_WAIT, qmp.quit()).await.is_err() {
                        reaper.kill(pid);
                    }
                    Ok(())
                }
                .boxed()
            }
            Order::Kill => {
                self.dismissed.store(true, Ordering::Relaxed);
                self.reaper.kill(self.pid);
                async { Ok(()) }.boxed()
            }
        }
    }
}

fn into_order_error(error: QmpError) -> OrderError {
    match error {
        QmpError::Closed | QmpError::Socket(_) | QmpError::Malformed(_) => OrderError::Gone,
        QmpError::Silent(command) => OrderError::Silent(command),
        QmpError::Refused { command, reason } => OrderError::Refused { command, reason },
    }
}

/// Translates QEMU's events, then waits for the process to end.
async fn report(
    mut from_qemu: mpsc::Receiver<QmpEvent>,
    exit: oneshot::Receiver<Exit>,
    last_words: LastWords,
    dismissed: Arc<AtomicBool>,
    events: EventPort,
) {
    while let Some(event) = from_qemu.recv().await {
        tracing::debug!(?event, "QEMU says");
        if let Some(event) = event_of(&event) {
            events.send(event).await;
        }
    }
    let gone = match exit.await {
        Ok(exit) => departure(
            exit,
            dismissed.load(Ordering::Relaxed),
            &last_words.wait().await,
        ),
        Err(_) => Departure::Failed("lost track of the QEMU process".to_owned()),
    };
    events.send(Event::Gone(gone)).await;
}

async fn read_guest(mut reader: OwnedReadHalf, output: GuestOutput) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = reader.read(&mut buffer).await {
        output.write(&buffer[..count]);
    }
}

async fn write_guest(mut writer: OwnedWriteHalf, mut input: mpsc::Receiver<Bytes>) {
    while let Some(bytes) = input.recv().await {
        if writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

/// The last lines that QEMU wrote to standard error: its reason when it refuses to start.
struct LastWords {
    lines: Arc<Mutex<VecDeque<String>>>,
    finished: oneshot::Receiver<()>,
}

impl LastWords {
    fn listen(stderr: Option<OwnedFd>) -> io::Result<Self> {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let (done, finished) = oneshot::channel();
        if let Some(stderr) = stderr {
            let reader = pipe::Receiver::from_owned_fd(stderr)?;
            let last = Arc::clone(&lines);
            tokio::spawn(async move {
                let mut reader = BufReader::new(reader).lines();
                while let Ok(Some(line)) = reader.next_line().await {
                    tracing::warn!("QEMU: {line}");
                    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
                    if last.len() == LAST_LINES {
                        last.pop_front();
                    }
                    // QEMU prefixes its own name, which readers know.
                    last.push_back(
                        line.strip_prefix(OWN_NAME)
                            .map(str::to_owned)
                            .unwrap_or(line),
                    );
                }
                let _ = done.send(());
            });
        }
        Ok(Self { lines, finished })
    }

    /// What it said in the end. Call it after the process has ended.
    async fn wait(self) -> String {
        let _ = timeout(EXIT_WAIT, self.finished).await;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.make_contiguous().join("; ")
    }
}
