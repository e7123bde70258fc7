//! One KVM machine that boots a kernel directly and whose end is told exactly.
//!
//! The crate knows nothing of Kubernetes and runs no async runtime: a machine is one guest memory, one vCPU thread and
//! a few port devices. What a guest did is decided in pure code (`devices`, `boot`, `memory::layout`); `machine` and
//! `vcpu` are the thin shells that talk to `/dev/kvm`.
//!
//! ```no_run
//! use virt_vmm::{Machine, MachineConfig};
//!
//! let mut config = MachineConfig::new("/boot/probe", 64 << 20);
//! config.cmdline = "off=poweroff".to_owned();
//! let machine = Machine::create(&config, Box::new(|stamped| drop(stamped)))?;
//! machine.start()?;
//! let ending = machine.wait();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acpi;
mod boot;
mod clock;
mod config;
mod console;
mod devices;
mod event;
mod kvm;
mod machine;
mod memory;
mod vcpu;

pub use boot::{KernelError, KernelKind};
pub use config::{COMMAND_LINE_MAX, ConfigError, MachineConfig, PAGE_SIZE};
pub use console::{Chunk, Console, ConsoleReader};
pub use event::{Ending, EngineFault, Event, ResetCause, Stamped};
pub use kvm::{KvmError, KvmFacts, kvm_usable};
pub use machine::{ControlError, CreateError, EventSink, Machine, MachineStats};
pub use memory::MemoryError;
