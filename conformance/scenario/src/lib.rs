//! Scenarios as data: what a tester writes, read strictly, and nothing that talks to a cluster.
//!
//! `model` holds the words of a scenario, `spec` the data files around them, `matcher` and `path`
//! the small language for expectations. `library` reads a tree of files and `lint` tells what is wrong with it.

pub mod duration;
pub mod filter;
pub mod ids;
pub mod kinds;
pub mod library;
pub mod lint;
pub mod matcher;
pub mod model;
pub mod path;
pub mod selector;
pub mod spec;
pub mod template;
pub mod yaml;

pub use ids::{ClauseId, LocalId, MutantId, ScenarioId};
pub use library::Library;
pub use matcher::Matcher;
pub use model::Scenario;
pub use path::Path;
