//! Text that does not belong in a commit: paths of one machine, unfinished code.

use super::{Finding, Tree};

/// Each with the reason; written in pieces so that this file does not find itself.
const FORBIDDEN: &[(&[&str], &str)] = &[
    (&["/wo", "rk/"], "a path of one machine"),
    (&["/ro", "ot/"], "a path of one user"),
    (&["to", "do!("], "unfinished code"),
    (&["unimple", "mented!("], "unfinished code"),
    (&["FIX", "ME"], "unfinished code"),
];

/// Workflow files describe machines of others.
const EXEMPT: &[&str] = &[".github/"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files()
        .filter(|(name, _)| !EXEMPT.iter().any(|dir| name.starts_with(dir)))
        .filter(|(name, _)| !name.ends_with("go.sum"))
        .flat_map(|(name, text)| {
            in_text(text).map(move |(line, what)| Finding {
                place: format!("{name}:{line}"),
                what,
            })
        })
        .collect()
}

fn in_text(text: &str) -> impl Iterator<Item = (usize, String)> {
    text.lines().enumerate().flat_map(|(number, line)| {
        FORBIDDEN.iter().filter_map(move |(pieces, why)| {
            let word = pieces.concat();
            line.contains(&word)
                .then(|| (number + 1, format!("{word} is {why}")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_line_and_reason() {
        let text = format!("fine\nlet x = \"{}{}here\";", "/wo", "rk/");
        let found: Vec<_> = in_text(&text).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 2);
        assert!(found[0].1.contains("a path of one machine"));
    }
}
