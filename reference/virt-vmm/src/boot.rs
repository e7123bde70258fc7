//! Putting a kernel into guest memory: read the file, plan in pure code (`elf`, `pvh`), then write.

mod elf;
mod kernel;
mod pvh;

pub use kernel::{KernelError, KernelKind};

pub(crate) use kernel::{BootFiles, load};
