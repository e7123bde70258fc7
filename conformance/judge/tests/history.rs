//! The judge on small hand-written histories: what it must notice, and what it must not claim to know.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has to stop")]

#[path = "history/builder.rs"]
mod builder;
#[path = "history/trust.rs"]
mod trust;
#[path = "history/words.rs"]
mod words;
