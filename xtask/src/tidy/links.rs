//! Relative links in Markdown lead to files that exist.

use std::path::Path;

use super::{Finding, Tree};

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, text) in tree.files().filter(|(name, _)| name.ends_with(".md")) {
        let dir = Path::new(name).parent().unwrap_or_else(|| Path::new(""));
        for target in targets(text) {
            if !tree.root.join(dir).join(&target).exists() {
                findings.push(Finding {
                    place: name.to_owned(),
                    what: format!("the link to {target} leads nowhere"),
                });
            }
        }
    }
    findings
}

/// Targets of links within the repository: no scheme, no bare anchor, code blocks left out.
fn targets(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for part in line.split("](").skip(1) {
            let Some(target) = part.split(')').next() else {
                continue;
            };
            let path = target.split(['#', ' ']).next().unwrap_or_default();
            let local = !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:");
            if local {
                found.push(path.to_owned());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_only_links_within_the_repository() {
        let text = "[a](docs/a.md#part) [b](https://x.example/y) [c](#here)\n\
                    ```\n[d](code.md)\n```\n![e](img/e.png)";
        assert_eq!(targets(text), ["docs/a.md", "img/e.png"]);
    }
}
