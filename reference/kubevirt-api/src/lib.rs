//! The KubeVirt API as this project serves it: wire types, defaulting and admission rules.
//!
//! A leaf crate without I/O: plain values in, plain values out. One Rust type per OpenAPI
//! definition of the original, with the same name, so that facts can be looked up by name.

pub mod admit;
pub mod config;
pub mod crd;
pub mod default;
pub mod names;
pub mod overlay;
pub mod quantity;
pub mod review;
pub mod v1;
