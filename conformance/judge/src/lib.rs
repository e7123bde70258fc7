//! From a scenario and a recorded history to a verdict. Nothing here asks a cluster or a clock.
//!
//! `history` puts the lines of a journal in order, `finding` is what one question about them can come to, `assertion`
//! and `step` ask the questions, `verdict` sums up. `mutate` and `sensitivity` prove that a verdict can be otherwise.

mod assertion;
mod explain;
mod finding;
mod history;
mod judge;
mod limits;
mod mutate;
mod reply;
mod run;
mod sensitivity;
mod step;
pub mod timeline;
mod verdict;

pub use finding::Finding;
pub use judge::{Outlook, Waiting, judge, outlook, step_finding};
pub use limits::{Budget, Limits};
pub use mutate::{MutateError, mutate};
pub use reply::refused_by;
pub use run::{RunVerdicts, judge_run, unstarted};
pub use sensitivity::{Matrix, Row, RowOutcome, sensitivity};
pub use verdict::{
    Blame, Check, CheckKind, CheckStatus, DeadlineUsed, Explanation, Mark, Mismatch, Status,
    Verdict,
};
