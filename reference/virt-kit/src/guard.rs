//! Watches that outlive unreadable objects: such an object is data, not a dead watch.

pub use kube::core::error_boundary::{DeserializeGuard, InvalidObject};

/// An object, or the reason why it cannot be read together with its metadata.
pub type Guarded<K> = DeserializeGuard<K>;
