//! The record of a run. Everything a run sees is one line of JSON; every verdict and report is derived from the lines.
//!
//! `entry` is what a line says, `writer` puts lines down one by one and chains them, `reader` tells whether the chain
//! is whole and where it ends, `redact` keeps secrets out.

pub mod convert;
pub mod entry;
pub mod reader;
pub mod redact;
pub mod writer;

pub use entry::{Entry, Event, Pace};
pub use reader::{Ending, Journal, JournalError};
pub use writer::{Clock, Stamp, Writer};
