//! How fast a virtual machine boots, measured so that the answer can be trusted: candidates take turns within one run,
//! the order rotates each round, and what is reported is paired ratios beside the milliseconds of this one host.
//!
//! `candidate` says what is started, `run` starts it and takes the times, `statistics` and `table` turn times into
//! rows and text. The last two are pure.

pub mod boot;
pub mod printer;
