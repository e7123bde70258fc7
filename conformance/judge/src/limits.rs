//! How long a wait may take on this machine: the table of classes times the measured factor.

use std::time::Duration;

use conformance_journal::Pace;
use conformance_scenario::{model::Deadline, spec::Timeouts};

/// The table and the factor.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Nominal and hard limits by class.
    pub timeouts: Timeouts,
    /// Measured factors by class.
    pub pace: Pace,
}

/// What a deadline comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Later than this is slow, in nanoseconds.
    pub nominal: u64,
    /// Later than this is too late, in nanoseconds.
    pub limit: u64,
    /// The factor that is in `limit`.
    pub factor: f64,
    /// `boot`, `fixed`, …
    pub class: String,
}

impl Limits {
    /// What a deadline comes to. Limits of the specification are never scaled.
    pub fn budget(&self, deadline: &Deadline) -> Budget {
        match deadline {
            Deadline::Class(class) => {
                let limit = self.timeouts.of(*class);
                let name = class.to_string();
                let factor = self.pace.factor(&name);
                Budget {
                    nominal: nanos(limit.nominal),
                    limit: nanos(limit.hard.mul_f64(factor)),
                    factor,
                    class: name,
                }
            }
            Deadline::Fixed { limit, .. } => Budget {
                nominal: nanos(*limit),
                limit: nanos(*limit),
                factor: 1.0,
                class: "fixed".to_owned(),
            },
        }
    }

    /// How long `always … for` looks: the nominal time of the class, scaled, for it is a stretch to watch and no deadline.
    pub fn stretch(&self, deadline: &Deadline) -> u64 {
        match deadline {
            Deadline::Class(class) => nanos(
                self.timeouts
                    .of(*class)
                    .nominal
                    .mul_f64(self.pace.factor(&class.to_string())),
            ),
            Deadline::Fixed { limit, .. } => nanos(*limit),
        }
    }
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
