//! The protocol between virt-handler and virt-launcher.
//!
//! - [`proto`]: the gRPC service, generated from `proto/launcher.proto`
//! - [`domain`]: the machine that the handler orders, as JSON inside a start request
//! - [`state`]: how a state reads as JSON, for the file that outlives the launcher
//! - [`paths`]: every socket and file that both sides know, as seen in the pod and on the node
//! - [`client`]: a connection to one launcher
//! - [`socket`]: unix sockets whose path may be longer than the kernel's limit
//!
//! What is absent: this crate knows nothing of Kubernetes objects and nothing of machines.

pub mod client;
pub mod domain;
pub mod paths;
pub mod socket;
pub mod state;

/// The generated messages, client and server.
#[expect(clippy::allow_attributes_without_reason, reason = "generated code")]
pub mod proto {
    tonic::include_proto!("virtmark.cmd.v1");
}

pub use domain::Domain;
pub use proto::{DomainState, Ending, Phase};
