//! virt-api: admission webhooks, and the subresources of VMs and VMIs behind the aggregation layer.
//!
//! It keeps nothing. What it decides is decided by pure functions, in `kubevirt-api` for admission
//! and in [`subresource`] for calls; the rest is HTTP.

pub mod app;
pub mod args;
pub mod auth;
pub mod discovery;
pub mod handler;
pub mod settings;
pub mod subresource;
pub mod webhook;
