//! The part of a machine that only its vCPU thread touches, and the loop of that thread.

use std::path::Path;
use std::sync::Arc;

use kvm_ioctls::{VcpuFd, VmFd};
use vm_memory::GuestMemoryMmap;

use crate::boot::{self, BootFiles};
use crate::config::MachineConfig;
use crate::devices::{Effect, Options, Ports};
use crate::event::{Ending, EngineFault, Event, ResetCause};
use crate::kvm::{self, KvmError};
use crate::machine::CreateError;
use crate::machine::control::Control;
use crate::memory::layout::{self, Span};
use crate::memory::{self};
use crate::vcpu::{Exit, Kicker, PowerOnState, dead_halt, enter, finish_access, prepare_thread};

/// A loaded machine. The order of the fields is the order in which they are closed: the memory outlives KVM's use of it.
#[derive(Debug)]
pub(crate) struct Engine {
    vcpu: VcpuFd,
    _vm: VmFd,
    memory: GuestMemoryMmap,
    spans: Vec<Span>,
    files: BootFiles,
    power_on: PowerOnState,
    ports: Ports,
    options: Options,
    control: Arc<Control>,
}

/// Where the guest is in its life, as told by events.
#[derive(Debug, Default)]
struct Told {
    running: bool,
    entered: bool,
    paused: bool,
    stuck: bool,
}

impl Engine {
    /// Memory slots come before the irqchip: the other way round each slot waits milliseconds for a grace period.
    pub(crate) fn create(
        config: &MachineConfig,
        device: &Path,
        control: Arc<Control>,
    ) -> Result<Self, CreateError> {
        let mut files = BootFiles::open(config)?;
        let kvm = kvm::open(device)?;
        let vm = kvm.create_vm().map_err(request("KVM_CREATE_VM"))?;
        control.emit(Event::Created);
        let spans = layout::spans(config.memory_bytes)?;
        let memory = memory::map(&spans, config.memory_bytes)?;
        memory::register(&vm, &memory)?;
        control.emit(Event::MemoryReady);
        kvm::split_irqchip(&vm)?;
        let vcpu = vm.create_vcpu(0).map_err(request("KVM_CREATE_VCPU"))?;
        vcpu.set_cpuid2(kvm::cpuid(&kvm)?)
            .map_err(request("KVM_SET_CPUID2"))?;
        let power_on = PowerOnState::of(&vcpu)?;
        let entry = boot::load(&mut files, &memory, &spans)?;
        power_on.enter_at(&vcpu, entry)?;
        control.emit(Event::KernelLoaded);
        let options = Options {
            panic: config.panic_device,
            debug_exit: config.debug_exit,
        };
        let ports = Ports::new(control.console().clone(), options);
        Ok(Self {
            vcpu,
            _vm: vm,
            memory,
            spans,
            files,
            power_on,
            ports,
            options,
            control,
        })
    }

    /// Body of the vCPU thread: runs the guest to its end, closes the machine, and only then tells the ending.
    pub(crate) fn run(mut self) {
        let control = Arc::clone(&self.control);
        let ending = match prepare_thread() {
            Ok(()) => {
                control.set_kicker(Some(Kicker::of_this_thread(&mut self.vcpu)));
                let ending = self.drive();
                control.set_kicker(None);
                ending
            }
            Err(error) => {
                let errno = error.raw_os_error().unwrap_or_default();
                fault(EngineFault::Request {
                    request: "sigaction".to_owned(),
                    errno,
                })
            }
        };
        drop(self);
        control.end(ending);
    }

    /// Ends a machine that was never started.
    pub(crate) fn abandon(self) {
        let control = Arc::clone(&self.control);
        drop(self);
        control.end(Ending::Killed);
    }

    fn drive(&mut self) -> Ending {
        let mut told = Told::default();
        loop {
            if let Some(ending) = self.obey(&mut told) {
                return ending;
            }
            self.tell_entry(&mut told);
            if let Some(ending) = self.run_until_interrupted(&mut told) {
                return ending;
            }
        }
    }

    /// Carries out requests; while the machine is to stand still, waits for more.
    fn obey(&mut self, told: &mut Told) -> Option<Ending> {
        let mut requests = self.control.take_requests();
        loop {
            if requests.kill {
                return Some(Ending::Killed);
            }
            if requests.reset
                && let Err(fault) = self.reboot(ResetCause::Requested, told)
            {
                return Some(self::fault(fault));
            }
            if requests.button {
                self.ports.press_button();
            }
            if requests.paused != told.paused {
                told.paused = requests.paused;
                self.control.emit(if told.paused {
                    Event::Paused
                } else {
                    Event::Resumed
                });
            }
            if requests.examine && !told.paused && !told.stuck && dead_halt(&self.vcpu) {
                told.stuck = true;
                self.control.emit(Event::Stuck);
            }
            if !told.paused {
                return None;
            }
            requests = self.control.take_requests_while_paused();
        }
    }

    /// Tells once per boot that the guest is entered, and once per machine that it runs.
    fn tell_entry(&self, told: &mut Told) {
        if !std::mem::replace(&mut told.entered, true) {
            self.control.count_boot();
            self.control.emit(Event::Entered);
        }
        if !std::mem::replace(&mut told.running, true) {
            self.control.emit(Event::Running);
        }
    }

    fn run_until_interrupted(&mut self, told: &mut Told) -> Option<Ending> {
        loop {
            let exit = enter(&mut self.vcpu, &mut self.ports);
            let effect = match exit {
                Exit::Access(effect) => effect,
                Exit::Interrupted => return None,
                Exit::Fault(fault) => return Some(self::fault(fault)),
            };
            self.control.count_exit();
            match effect {
                Effect::Nothing => {}
                Effect::FirstByte => self.control.emit(Event::FirstByte),
                Effect::PowerOff => return Some(Ending::PoweredOff),
                Effect::Panic => return Some(Ending::Panicked),
                Effect::DebugExit(code) => return Some(Ending::DebugExit { code }),
                Effect::Reset(cause) => return self.reboot(cause, told).err().map(self::fault),
            }
        }
    }

    /// Boots again in this machine: everything but the VM, its memory slots and the console is as after power-on.
    /// The vCPU is left kicked, so the loop looks for requests before the guest goes on.
    fn reboot(&mut self, cause: ResetCause, told: &mut Told) -> Result<(), EngineFault> {
        self.control.emit(Event::Rebooted { cause });
        finish_access(&mut self.vcpu);
        memory::discard(&self.memory).map_err(|error| reload(&error))?;
        let entry = boot::load(&mut self.files, &self.memory, &self.spans)
            .map_err(|error| reload(&error))?;
        self.power_on
            .reset(&self.vcpu, entry)
            .map_err(|error| reload(&error))?;
        self.ports = Ports::new(self.control.console().clone(), self.options);
        told.entered = false;
        told.stuck = false;
        self.control.emit(Event::KernelLoaded);
        Ok(())
    }
}

fn fault(fault: EngineFault) -> Ending {
    Ending::EngineError { fault }
}

/// The whole chain in one line, since an event carries text and not sources.
fn reload(error: &dyn std::error::Error) -> EngineFault {
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        reason.push_str(": ");
        reason.push_str(&cause.to_string());
        source = cause.source();
    }
    EngineFault::Reload { reason }
}

fn request(request: &'static str) -> impl FnOnce(kvm_ioctls::Error) -> KvmError {
    move |source| KvmError::Request { request, source }
}
