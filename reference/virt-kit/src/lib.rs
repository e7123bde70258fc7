//! What every component of the reference needs and none should write again: a client, leader
//! election, certificates, an HTTPS server, events, health and one way to start and to fail.

pub mod args;
pub mod client;
pub mod events;
pub mod fault;
pub mod guard;
pub mod health;
pub mod leader;
pub mod program;
pub mod retry;
pub mod serve;
pub mod tls;
