//! The KVM back end: our own machine, in this process.
//!
//! The machine's threads report through a channel; one task owns the machine, answers the orders and
//! carries the console's bytes. The machine ends by itself when its guest powers off, so booting again
//! after that makes another one from the same recipe.
#![expect(
    unsafe_code,
    reason = "tokio must be promised that the console's descriptor stays open"
)]

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use futures::FutureExt;
use thiserror::Error;
use tokio::{
    io::{Interest, unix::AsyncFd},
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::timeout,
};
use virt_vmm::{
    ConsoleReader, ControlError, CreateError, Ending, Event as VmmEvent, MachineConfig,
};

use crate::{
    conductor::EventPort,
    machine::{Carried, Departure, Event, Machine, Order, OrderError},
    serial::{GuestOutput, SerialPort},
};

/// A virtual processor notices a request at its next exit, and is made to exit.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// One read of the guest's output.
const PIECE: usize = 16 * 1024;

/// Everything the machine is made of.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) kernel: PathBuf,
    pub(crate) initrd: Option<PathBuf>,
    pub(crate) cmdline: String,
    pub(crate) memory_bytes: u64,
    pub(crate) panic_device: bool,
    pub(crate) paused: bool,
}

/// Why the machine did not come to be.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error("failed to make the machine")]
    Create(#[from] CreateError),
    #[error("failed to start the machine")]
    Start(#[from] ControlError),
    #[error("failed to open the machine's console")]
    Console(#[source] std::io::Error),
    #[error("the machine's maker was cancelled")]
    Cancelled,
}

/// The conductor's handle.
struct Vmm {
    requests: mpsc::UnboundedSender<Request>,
}

struct Request {
    order: Order,
    done: oneshot::Sender<Result<(), OrderError>>,
}

/// Makes and starts the machine. [`Event::Started`] is sent before the guest runs; after an error there is no
/// further event.
pub(crate) async fn start(
    recipe: Recipe,
    serial: SerialPort,
    events: EventPort,
) -> Result<Box<dyn Machine>, StartError> {
    let mut instance = Instance::make(recipe.clone(), recipe.paused).await?;
    if recipe.paused {
        instance.machine.start()?;
        // A resume that comes before the processor stands still would be neither needed nor confirmed.
        instance.until_paused().await;
        events.send(Event::Started { paused: true }).await;
    } else {
        events.send(Event::Started { paused: false }).await;
        instance.machine.start()?;
    }
    let (requests, queue) = mpsc::unbounded_channel();
    let owner = Owner {
        recipe,
        serial,
        events,
        queue,
        waiting: Vec::new(),
    };
    tokio::spawn(owner.run(instance));
    Ok(Box::new(Vmm { requests }))
}

impl Machine for Vmm {
    fn order(&mut self, order: Order) -> Carried {
        let (done, carried) = oneshot::channel();
        let sent = self.requests.send(Request { order, done });
        async move {
            sent.map_err(|_| OrderError::Gone)?;
            match timeout(ANSWER_WAIT, carried).await {
                Ok(Ok(result)) => result,
                Ok(Err(_)) => Err(OrderError::Gone),
                Err(_) => Err(OrderError::Silent(name(order))),
            }
        }
        .boxed()
    }
}

fn name(order: Order) -> &'static str {
    match order {
        Order::Pause => "pause",
        Order::Resume => "resume",
        Order::PowerButton => "power button",
        Order::Reset => "reset",
        Order::BootAgain => "boot",
        Order::Dispose => "dispose",
        Order::Kill => "kill",
    }
}

/// One machine with its outlets.
struct Instance {
    machine: virt_vmm::Machine,
    reports: mpsc::UnboundedReceiver<VmmEvent>,
    output: AsyncFd<ConsoleReader>,
}

impl Instance {
    async fn make(recipe: Recipe, paused: bool) -> Result<Self, StartError> {
        // The sink runs on the processor's thread and must not wait; its reader does nothing but pass on.
        let (report, reports) = mpsc::unbounded_channel();
        let config = MachineConfig {
            initrd: recipe.initrd,
            cmdline: recipe.cmdline,
            panic_device: recipe.panic_device,
            start_paused: paused,
            ..MachineConfig::new(recipe.kernel, recipe.memory_bytes)
        };
        let sink = Box::new(move |stamped: virt_vmm::Stamped| drop(report.send(stamped.event)));
        let machine = spawn_blocking(move || virt_vmm::Machine::create(&config, sink))
            .await
            .map_err(|_| StartError::Cancelled)??;
        let reader = machine.console().reader().map_err(StartError::Console)?;
        // SAFETY: the reader owns its descriptor, names the same one for life, and lives in the AsyncFd.
        let output = unsafe { AsyncFd::register_with_interest(reader, Interest::READABLE) }
            .map_err(|error| StartError::Console(error.into()))?;
        Ok(Self {
            machine,
            reports,
            output,
        })
    }

    /// Skips the reports of a start that ends before the first instruction.
    async fn until_paused(&mut self) {
        while self
            .reports
            .recv()
            .await
            .is_some_and(|report| report != VmmEvent::Paused)
        {}
    }

    /// Passes on everything that the guest has written.
    fn drain(&mut self, guest: &GuestOutput) {
        let mut buffer = vec![0; PIECE];
        loop {
            let chunk = self.output.get_mut().read(&mut buffer);
            if chunk.lost > 0 {
                tracing::warn!(
                    bytes = chunk.lost,
                    "the guest wrote faster than it could be read"
                );
            }
            if chunk.length == 0 {
                return;
            }
            guest.write(&buffer[..chunk.length]);
        }
    }
}

/// What the owning task holds besides the machine.
struct Owner {
    recipe: Recipe,
    serial: SerialPort,
    events: EventPort,
    queue: mpsc::UnboundedReceiver<Request>,
    /// Orders that are carried out when their event comes.
    waiting: Vec<Request>,
}

impl Owner {
    async fn run(mut self, mut instance: Instance) {
        loop {
            let ending = self.attend(&mut instance).await;
            instance.drain(&self.serial.output);
            self.waiting.clear();
            // The threads are done or about to be.
            let _ = spawn_blocking(move || instance.machine.wait()).await;
            let departure = match ending {
                Ending::PoweredOff => self.after(Event::PoweredOff).await,
                Ending::Panicked => self.after(Event::Panicked).await,
                Ending::Killed => Next::Gone(Departure::Disposed),
                Ending::EngineError { fault } => Next::Gone(Departure::Failed(fault.to_string())),
                Ending::DebugExit { code } => Next::Gone(Departure::Failed(format!(
                    "the guest left by the debug port with {code}"
                ))),
            };
            match departure {
                Next::Again(next) => instance = next,
                Next::Gone(departure) => return self.events.send(Event::Gone(departure)).await,
            }
        }
    }

    /// Serves a living machine until it ends.
    async fn attend(&mut self, instance: &mut Instance) -> Ending {
        loop {
            tokio::select! {
                report = instance.reports.recv() => match report {
                    Some(VmmEvent::Ended { cause }) => return cause,
                    Some(report) => self.pass_on(report).await,
                    // The sink lives as long as the machine: it has gone without a word.
                    None => return Ending::Killed,
                },
                Some(request) = self.queue.recv() => self.ask(instance, request),
                Some(bytes) = self.serial.input.recv() => write_guest(instance, &bytes),
                Ok(mut ready) = instance.output.readable() => {
                    ready.clear_ready();
                    instance.drain(&self.serial.output);
                }
            }
        }
    }

    /// Hands an order to the machine. What it confirms by an event is answered then, anything else now.
    fn ask(&mut self, instance: &Instance, request: Request) {
        let machine = &instance.machine;
        match request.order {
            Order::Pause => machine.pause(),
            Order::Resume => machine.resume(),
            Order::Reset => machine.reset(),
            Order::PowerButton => machine.power_button(),
            Order::Kill | Order::Dispose => machine.kill(),
            Order::BootAgain => {}
        }
        if matches!(request.order, Order::Pause | Order::Resume | Order::Reset) {
            self.waiting.push(request);
        } else {
            let _ = request.done.send(Ok(()));
        }
    }

    async fn pass_on(&mut self, report: VmmEvent) {
        let (event, confirmed) = match report {
            VmmEvent::Paused => (Event::Paused, Order::Pause),
            VmmEvent::Resumed => (Event::Resumed, Order::Resume),
            VmmEvent::Rebooted { cause } => {
                tracing::debug!(?cause, "the guest reboots");
                (Event::Rebooted, Order::Reset)
            }
            VmmEvent::Stuck => {
                let note = "the guest has halted with interrupts off".to_owned();
                return self.events.send(Event::Note(note)).await;
            }
            report => return tracing::debug!(?report, "the machine says"),
        };
        self.events.send(event).await;
        for request in self
            .waiting
            .extract_if(.., |request| request.order == confirmed)
        {
            let _ = request.done.send(Ok(()));
        }
    }

    /// The guest has ended by itself: what next is the supervisor's decision.
    async fn after(&mut self, event: Event) -> Next {
        self.events.send(event).await;
        while let Some(Request { order, done }) = self.queue.recv().await {
            match order {
                Order::Dispose | Order::Kill => {
                    let _ = done.send(Ok(()));
                    break;
                }
                Order::BootAgain => match self.boot_again().await {
                    Ok(instance) => {
                        let _ = done.send(Ok(()));
                        return Next::Again(instance);
                    }
                    Err(error) => {
                        return Next::Gone(Departure::Failed(crate::server::chain(&error)));
                    }
                },
                _ => drop(done.send(Err(OrderError::Gone))),
            }
        }
        Next::Gone(Departure::Disposed)
    }

    async fn boot_again(&mut self) -> Result<Instance, StartError> {
        let instance = Instance::make(self.recipe.clone(), false).await?;
        instance.machine.start()?;
        self.events.send(Event::Rebooted).await;
        self.events.send(Event::Resumed).await;
        Ok(instance)
    }
}

/// After a guest's own end.
enum Next {
    Again(Instance),
    Gone(Departure),
}

/// The machine has a queue of 64 KiB; a guest that leaves that unread loses what follows, as on a real port.
fn write_guest(instance: &Instance, bytes: &Bytes) {
    let taken = instance.machine.console().write(bytes);
    if taken < bytes.len() {
        tracing::warn!(
            bytes = bytes.len() - taken,
            "the guest does not read its console; input is lost"
        );
    }
}
