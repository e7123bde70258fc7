//! The place of a value in its object, as messages name it.

use std::fmt;

/// A path such as `spec.domain.devices.disks[0].name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(String);

impl Field {
    /// A path of one or more names.
    #[must_use]
    pub fn new(path: &str) -> Self {
        Self(path.to_owned())
    }

    /// A field of the object at this path; `name` may be a path itself.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}.{name}", self.0))
    }

    /// A member of the list at this path.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
