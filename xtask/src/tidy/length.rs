//! Files that a newcomer can still hold in mind.

use super::{Finding, Tree};

/// Most lines of a source file, tests included.
const MOST: usize = 600;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|(name, _)| name.ends_with(".rs"))
        .filter_map(|(name, text)| {
            let lines = text.lines().count();
            (lines > MOST).then(|| Finding {
                place: name.to_owned(),
                what: format!("{lines} lines, at most {MOST}: split it by idea"),
            })
        })
        .collect()
}
