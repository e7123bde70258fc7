//! Who may depend on whom, and that every member inherits lints and versions.

use serde_json::Value;

use super::{Finding, Tree};

pub(super) fn check(metadata: &Value, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let place = half(package, tree);
        findings.extend(layering(package, &place));
    }
    for (name, text) in tree.files() {
        let member =
            name.ends_with("/Cargo.toml") && !name.contains("/probe/") && !name.contains("/fuzz/");
        if member {
            findings.extend(inheritance(name, text));
        }
    }
    findings
}

/// Path of the manifest, relative to the root.
fn half(package: &Value, tree: &Tree) -> String {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let root = tree.root.to_string_lossy();
    path.strip_prefix(root.as_ref())
        .unwrap_or(path)
        .trim_start_matches('/')
        .to_owned()
}

/// The suite knows the wire only; xtask links neither half; the machine knows no Kubernetes.
fn layering(package: &Value, place: &str) -> Vec<Finding> {
    let name = package["name"].as_str().unwrap_or_default();
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies
        .filter_map(|dependency| {
            let to = dependency["name"].as_str()?;
            let path = dependency["path"].as_str().unwrap_or_default();
            let why = forbidden(name, place, to, path)?;
            Some(Finding {
                place: place.to_owned(),
                what: format!("{name} depends on {to}: {why}"),
            })
        })
        .collect()
}

fn forbidden(name: &str, place: &str, to: &str, path: &str) -> Option<&'static str> {
    if place.starts_with("conformance/") && path.contains("/reference/") {
        return Some("the suite sees only the wire");
    }
    if place.starts_with("reference/") && path.contains("/conformance/") {
        return Some("the reference does not know its examiner");
    }
    if place.starts_with("xtask/") && !path.is_empty() {
        return Some("xtask executes the halves and links neither");
    }
    if name == "virt-vmm" && matches!(to, "kube" | "k8s-openapi" | "tokio" | "kubevirt-api") {
        return Some("the machine is a library without Kubernetes and without tokio");
    }
    if name == "kubevirt-api" && to == "tokio" {
        return Some("the API is a leaf without I/O");
    }
    None
}

fn inheritance(name: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |what: String| {
        findings.push(Finding {
            place: name.to_owned(),
            what,
        });
    };
    if !text.contains("[lints]\nworkspace = true") {
        add("does not inherit the lints: add [lints] workspace = true".to_owned());
    }
    let mut in_dependencies = false;
    for line in text.lines() {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if in_dependencies && line.contains('=') && !line.contains("workspace = true") {
            add(format!("states a version of its own: {line}"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "judge",
        "conformance/judge/Cargo.toml",
        "kubevirt-api",
        "/x/reference/kubevirt-api",
        true
    )]
    #[case(
        "judge",
        "conformance/judge/Cargo.toml",
        "conformance-journal",
        "/x/conformance/journal",
        false
    )]
    #[case(
        "virt-api",
        "reference/virt-api/Cargo.toml",
        "kubevirt-api",
        "/x/reference/kubevirt-api",
        false
    )]
    #[case("xtask", "xtask/Cargo.toml", "virt-vmm", "/x/reference/virt-vmm", true)]
    #[case("virt-vmm", "reference/virt-vmm/Cargo.toml", "tokio", "", true)]
    #[case("virt-kit", "reference/virt-kit/Cargo.toml", "tokio", "", false)]
    fn layers(
        #[case] name: &str,
        #[case] place: &str,
        #[case] to: &str,
        #[case] path: &str,
        #[case] refused: bool,
    ) {
        assert_eq!(forbidden(name, place, to, path).is_some(), refused);
    }

    #[test]
    fn own_versions_and_missing_lints_are_found() {
        let text =
            "[package]\nname = \"x\"\n[dependencies]\nserde = \"1\"\ntokio.workspace = true\n";
        let found = inheritance("x/Cargo.toml", text);
        assert_eq!(found.len(), 2);
        assert!(found[1].what.contains("serde"));
    }
}
