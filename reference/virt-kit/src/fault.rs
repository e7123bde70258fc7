//! Faults on purpose: a reference that breaks one promise, so that the suite can be seen to notice.
//!
//! The annotation `virtmark.dev/fault` on the KubeVirt resource names one; the operator hands it to
//! the components as `VIRTMARK_FAULT`. Without it nothing here does anything.

use std::{fmt, sync::OnceLock};

/// Environment variable that names the fault.
pub const VARIABLE: &str = "VIRTMARK_FAULT";
/// Annotation on the KubeVirt resource that names the fault.
pub const ANNOTATION: &str = "virtmark.dev/fault";

/// One promise that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// virt-controller never says that a VMI is ready.
    SkipReadyCondition,
    /// virt-handler does not label its node as schedulable.
    ForgetSchedulableLabel,
    /// virt-api accepts every VM and VMI.
    AcceptEverything,
}

impl Fault {
    /// All faults, for `--help` and tests.
    pub const ALL: [Self; 3] = [
        Self::SkipReadyCondition,
        Self::ForgetSchedulableLabel,
        Self::AcceptEverything,
    ];

    /// The word in the annotation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SkipReadyCondition => "skip-ready-condition",
            Self::ForgetSchedulableLabel => "forget-schedulable-label",
            Self::AcceptEverything => "accept-everything",
        }
    }

    /// The fault of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.name() == name)
    }

    /// Whether this process is to have this fault.
    #[must_use]
    pub fn is_on(self) -> bool {
        static ACTIVE: OnceLock<Option<Fault>> = OnceLock::new();
        let active = ACTIVE.get_or_init(|| {
            let fault = Fault::by_name(&std::env::var(VARIABLE).ok()?)?;
            tracing::warn!(%fault, "running with a fault on purpose");
            Some(fault)
        });
        *active == Some(self)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for fault in Fault::ALL {
            assert_eq!(Fault::by_name(fault.name()), Some(fault));
        }
        assert_eq!(Fault::by_name("no-such-fault"), None);
    }
}
