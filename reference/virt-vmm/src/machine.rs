//! The machine: made by [`Machine::create`], run by one thread, steered by requests from any other.
//!
//! `control` is what the outside and the vCPU thread share; `engine` is what only the vCPU thread touches.

mod control;
mod engine;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use thiserror::Error;

use crate::boot::KernelError;
use crate::config::{ConfigError, MachineConfig};
use crate::console::Console;
use crate::event::{Ending, Stamped};
use crate::kvm::KvmError;
use crate::machine::control::{Control, watch_for_dead_halt};
use crate::machine::engine::Engine;
use crate::memory::MemoryError;

/// Receives every event, in order, mostly on the vCPU thread: it has to be quick, and must not hold a [`Machine`].
pub type EventSink = Box<dyn Fn(Stamped) + Send + Sync>;

/// A handle on a machine; clones are the same machine. Dropping the last one kills it.
#[derive(Debug, Clone)]
pub struct Machine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    control: Arc<Control>,
    /// Taken by `start`.
    engine: Mutex<Option<Engine>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Counters of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineStats {
    /// How often the guest was started: 1 after the first entry, one more for each reset.
    pub boots: u32,
    /// How often the guest came out for a device or a kick.
    pub exits: u64,
}

/// A machine could not be made.
#[derive(Debug, Error)]
pub enum CreateError {
    /// The request is wrong in itself.
    #[error("invalid machine")]
    Config(#[from] ConfigError),
    /// KVM cannot be used.
    #[error("kvm is not usable")]
    Kvm(#[from] KvmError),
    /// Guest memory cannot be made.
    #[error("guest memory cannot be made")]
    Memory(#[from] MemoryError),
    /// The kernel, its initrd or its command line cannot be loaded.
    #[error("kernel cannot be loaded")]
    Kernel(#[from] KernelError),
}

/// A machine could not be started.
#[derive(Debug, Error)]
pub enum ControlError {
    /// It was started before.
    #[error("machine was already started")]
    AlreadyStarted,
    /// It is gone.
    #[error("machine has ended")]
    Ended,
    /// The host has no thread left.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
}

impl Machine {
    /// Makes a machine on `/dev/kvm` with its kernel loaded, ready to start.
    ///
    /// # Errors
    /// What cannot be had, by kind.
    pub fn create(config: &MachineConfig, events: EventSink) -> Result<Self, CreateError> {
        config.validate()?;
        let control = Arc::new(Control::new(events, Console::new(), config.start_paused));
        let engine = Engine::create(config, Path::new(crate::kvm::DEVICE), Arc::clone(&control))?;
        let inner = Inner {
            control,
            engine: Mutex::new(Some(engine)),
            threads: Mutex::default(),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Lets the guest run, or, with `start_paused`, stand before its first instruction.
    ///
    /// # Errors
    /// The machine was started before or has ended, or there is no thread for it.
    pub fn start(&self) -> Result<(), ControlError> {
        if self.inner.control.ended().is_some() {
            return Err(ControlError::Ended);
        }
        let engine = lock(&self.inner.engine)
            .take()
            .ok_or(ControlError::AlreadyStarted)?;
        let vcpu = Builder::new()
            .name("vcpu0".to_owned())
            .spawn(move || engine.run());
        let vcpu = vcpu.map_err(ControlError::Thread)?;
        lock(&self.inner.threads).push(vcpu);
        let control = Arc::clone(&self.inner.control);
        let watchdog = Builder::new()
            .name("watchdog".to_owned())
            .spawn(move || watch_for_dead_halt(&control));
        lock(&self.inner.threads).push(watchdog.map_err(ControlError::Thread)?);
        Ok(())
    }

    /// Asks the guest to stand still; [`crate::Event::Paused`] confirms it.
    pub fn pause(&self) {
        self.inner
            .control
            .request(|requests| requests.paused = true);
    }

    /// Lets the guest go on; [`crate::Event::Resumed`] confirms it.
    pub fn resume(&self) {
        self.inner
            .control
            .request(|requests| requests.paused = false);
    }

    /// Presses the ACPI power button; what follows is the guest's decision.
    pub fn power_button(&self) {
        self.inner
            .control
            .request(|requests| requests.button = true);
    }

    /// Boots the guest again in this machine; [`crate::Event::Rebooted`] confirms it. A paused machine stays paused.
    pub fn reset(&self) {
        self.inner.control.request(|requests| requests.reset = true);
    }

    /// Ends the machine without asking the guest. Does nothing once it has ended by itself.
    pub fn kill(&self) {
        self.inner.kill();
    }

    /// The serial console.
    pub fn console(&self) -> Console {
        self.inner.control.console().clone()
    }

    /// Waits for the end. A machine that is never started only ends when it is killed.
    pub fn wait(&self) -> Ending {
        let ending = self.inner.control.wait();
        self.inner.join();
        ending
    }

    /// The end, if it has come.
    pub fn ended(&self) -> Option<Ending> {
        self.inner.control.ended()
    }

    /// Counters.
    pub fn stats(&self) -> MachineStats {
        self.inner.control.stats()
    }
}

impl Inner {
    fn kill(&self) {
        self.control.request(|requests| requests.kill = true);
        // A machine that was never started has no thread that could carry this out.
        if let Some(engine) = lock(&self.engine).take() {
            engine.abandon();
        }
    }

    fn join(&self) {
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // A panic on the thread has been reported by the panic hook; the machine has ended either way.
            let _panicked = thread.join();
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill();
        self.join();
    }
}

/// Each statement leaves the data behind these locks whole, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
