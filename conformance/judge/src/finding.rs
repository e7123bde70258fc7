//! What one question about a history can come to.

use crate::verdict::{Blame, DeadlineUsed, Explanation};

/// What one question about a history can come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding {
    /// True, since this moment.
    Held {
        /// Nanoseconds.
        at: u64,
        /// Position in the entries, for windows that start here.
        index: usize,
        /// How much of which deadline was used.
        used: Option<DeadlineUsed>,
    },
    /// False, and why.
    Refuted(Box<Explanation>),
    /// The history does not tell.
    Unknown {
        /// Why not.
        why: String,
        /// Whose doing that is.
        blame: Blame,
    },
    /// Not decided yet; it will be at this moment at the latest.
    Pending {
        /// Nanoseconds.
        until: u64,
    },
    /// True so far; the end of the window decides.
    Open,
    /// Never asked: the moment it starts at did not come.
    NotReached {
        /// The moment.
        point: String,
    },
    /// It cannot be asked: our own fault, or the environment's.
    Broken {
        /// Why not.
        why: String,
        /// Whose doing that is.
        blame: Blame,
    },
}

impl Finding {
    pub(crate) fn refuted(why: impl Into<String>) -> Self {
        Self::Refuted(Box::new(Explanation::new(why)))
    }

    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown {
            why: why.into(),
            blame: Blame::Environment,
        }
    }
}
