//! The node agent of the reference. See `reference/ARCHITECTURE.md` for its place among the others.
//!
//! What is absent: no state on disk, no talk with other nodes, and no machine of its own. A handler that is
//! killed loses nothing; machines run on, and its successor finds them through the API server and their sockets.

pub mod app;
pub mod args;
mod backoff;
pub mod device_plugin;
mod dir_watch;
pub mod domain;
pub mod node;
mod report;
pub mod server;

#[cfg(test)]
mod testing;
