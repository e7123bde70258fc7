//! From a domain to a machine: look at the host, choose a back end, prepare its recipe, make it.

use std::path::{Path, PathBuf};

use thiserror::Error;
use virt_cmd::{Domain, domain::Kernel};

use crate::{
    choice::{self, Backend, HostFacts, NoBackend},
    conductor::EventPort,
    files::Found,
    machine::{
        Machine,
        qemu::{
            self,
            args::{self, Accelerator, ArgsError},
        },
        vmm,
    },
    output::Printer,
    reaper::Reaper,
    serial::{SerialHub, SerialPort},
    server::chain,
    supervisor::Engine,
};

/// Everything a machine is made with.
pub(crate) struct Workshop {
    pub(crate) kvm: PathBuf,
    pub(crate) qemu: PathBuf,
    pub(crate) allow_emulation: bool,
    pub(crate) scratch: PathBuf,
    pub(crate) reaper: Reaper,
    pub(crate) printer: Printer,
    pub(crate) hub: SerialHub,
    /// Taken by the first machine.
    pub(crate) port: Option<SerialPort>,
}

/// A decision, ready to be carried out.
pub(crate) struct Plan {
    pub(crate) engine: Engine,
    recipe: Recipe,
    log_serial: bool,
}

enum Recipe {
    Vmm(vmm::Recipe),
    Qemu(qemu::Recipe),
}

/// Why no machine can be planned.
#[derive(Debug, Error)]
pub(crate) enum NoPlan {
    #[error(transparent)]
    Backend(#[from] NoBackend),
    #[error(transparent)]
    Args(#[from] ArgsError),
}

impl Workshop {
    /// Decides how to build the domain on this host.
    pub(crate) fn plan(&self, domain: Domain, found: Found) -> Result<Plan, NoPlan> {
        let host = HostFacts {
            kvm: is_usable(&self.kvm),
            allow_emulation: self.allow_emulation,
            qemu: self.qemu.is_file(),
        };
        let backend = choice::choose(&domain, found.kernel, host)?;
        let accelerator = match backend {
            Backend::QemuTcg => Accelerator::Tcg,
            Backend::Vmm | Backend::QemuKvm => Accelerator::Kvm,
        };
        let (machine, recipe) = match (backend, &domain.kernel) {
            (Backend::Vmm, Some(kernel)) => {
                ("vmm".to_owned(), Recipe::Vmm(self.vmm(&domain, kernel)))
            }
            _ => {
                let args = args::build(&domain, &found.images, accelerator)?;
                let recipe = qemu::Recipe {
                    program: self.qemu.clone(),
                    args,
                    scratch: self.scratch.clone(),
                    paused: domain.paused,
                };
                (args::machine_of(&domain).to_owned(), Recipe::Qemu(recipe))
            }
        };
        let engine = Engine {
            backend: backend.name(),
            accelerator: backend.accelerator(),
            machine,
        };
        Ok(Plan {
            engine,
            recipe,
            log_serial: domain.log_serial,
        })
    }

    /// Makes the machine. The future does not borrow: it runs beside the loop.
    pub(crate) fn make(
        &mut self,
        plan: Plan,
        events: EventPort,
    ) -> impl Future<Output = Result<Box<dyn Machine>, String>> + use<> {
        if plan.log_serial {
            self.hub.log_to(self.printer.clone());
        }
        let (port, reaper) = (self.port.take(), self.reaper.clone());
        async move {
            let port = port.ok_or("a launcher makes one machine only")?;
            match plan.recipe {
                Recipe::Vmm(recipe) => vmm::start(recipe, port, events)
                    .await
                    .map_err(|error| chain(&error)),
                Recipe::Qemu(recipe) => qemu::start(recipe, reaper, port, events)
                    .await
                    .map_err(|error| chain(&error)),
            }
        }
    }

    /// No machine any more: the console ends.
    pub(crate) fn close(&self) {
        self.hub.close();
    }

    fn vmm(&self, domain: &Domain, kernel: &Kernel) -> vmm::Recipe {
        vmm::Recipe {
            kernel: kernel.path.clone(),
            initrd: kernel.initrd.clone(),
            cmdline: kernel.cmdline.clone(),
            memory_bytes: domain.memory_bytes,
            panic_device: domain.panic_device,
            paused: domain.paused,
        }
    }
}

/// A pod without the device resource has no device; a node may have one that cannot do what is needed.
fn is_usable(kvm: &Path) -> bool {
    match virt_vmm::kvm_usable(kvm) {
        Ok(_) => true,
        Err(error) => {
            tracing::info!(reason = chain(&error), "no hardware virtualization");
            false
        }
    }
}
