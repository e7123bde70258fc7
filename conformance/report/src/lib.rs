//! From verdicts to readers. Everything here is derived from a library and a journal, so that it can be derived again.
//!
//! `report` is the document that counts, `claim` decides what a platform may say of itself, `exit` what scripts see.
//! `junit`, `html` and `table` show the same to others. `verify` derives a report again and tells every difference.

pub mod claim;
pub mod exit;
pub mod html;
pub mod junit;
pub mod plan;
pub mod report;
pub mod table;
pub mod verify;

pub use claim::{FeatureResult, ProfileResult, Word};
pub use exit::{Asked, ExitCode};
pub use plan::Plan;
pub use report::ConformanceReport;
pub use verify::{Finding, verify};
