//! Makes machines follow their VirtualMachineInstances: one session per VMI of this node reads what the launcher tells,
//! decides in pure code, and carries it out. Nothing is kept on disk: a restarted handler finds everything again.

mod convert;
mod decide;
mod launcher;
mod perform;
mod quantity;
mod registry;
mod session;
mod status;
mod supervisor;

pub use registry::{Listed, Registry, RunningMachine};
pub use session::SessionContext;
pub use supervisor::{SuperviseError, supervise};
