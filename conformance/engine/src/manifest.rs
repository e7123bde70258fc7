//! From a step's words to the object that is sent. Plain values in and out.

use conformance_scenario::{
    Library, Scenario, ScenarioId,
    model::{Source, step::Write},
    spec::Platform,
    template::{TemplateError, change, fill},
};
use serde_json::{Map, Value, json};

/// A manifest that cannot be made: a fault of the scenario.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A template that does not exist.
    #[error("there is no template {0}")]
    NoTemplate(String),
    /// `base: true` without a base.
    #[error("the scenario has no base")]
    NoBase,
    /// None or several of template, base and manifest.
    #[error("a write needs exactly one of template, base and manifest")]
    Source,
    /// Parameters or paths that do not fit.
    #[error("failed to fill the template")]
    Template(#[from] TemplateError),
}

/// What a run provides to templates.
pub fn ambient(platform: &Platform, run: &str, namespace: &str) -> Map<String, Value> {
    let mut values = Map::new();
    values.insert("namespace".to_owned(), namespace.into());
    values.insert("run".to_owned(), run.into());
    for (name, image) in &platform.images {
        values.insert(format!("image.{name}"), image.as_str().into());
    }
    values
}

/// The object that a write sends, labelled as ours.
pub fn build(
    library: &Library,
    scenario: &Scenario,
    write: &Write,
    ambient: &Map<String, Value>,
) -> Result<Value, ManifestError> {
    let mut manifest = match (&write.template, write.base, &write.manifest) {
        (Some(template), false, None) => filled(library, template, &write.with, ambient)?,
        (None, true, None) => {
            let Source { template, with } =
                scenario.spec.base.as_ref().ok_or(ManifestError::NoBase)?;
            let mut with = with.clone();
            with.extend(write.with.clone());
            filled(library, template, &with, ambient)?
        }
        (None, false, Some(manifest)) => fill(manifest, &write.with, ambient)?,
        _ => return Err(ManifestError::Source),
    };
    change(&mut manifest, &write.set, &write.unset)?;
    Ok(manifest)
}

/// The labels by which a run knows its own objects.
pub fn labels(run: &str, scenario: &ScenarioId) -> Value {
    json!({
        "virtmark.dev/run": run,
        "virtmark.dev/scenario": scenario.as_str(),
        "virtmark.dev/owned": "true",
    })
}

/// Adds labels to an object; what the object says itself stays.
pub fn add_labels(manifest: &mut Value, labels: &Value) {
    let Some(object) = manifest.as_object_mut() else {
        return;
    };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else {
        return;
    };
    let target = metadata.entry("labels").or_insert_with(|| json!({}));
    if let (Some(target), Some(labels)) = (target.as_object_mut(), labels.as_object()) {
        for (key, value) in labels {
            target.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
}

fn filled(
    library: &Library,
    template: &str,
    with: &Map<String, Value>,
    ambient: &Map<String, Value>,
) -> Result<Value, ManifestError> {
    let text = library.templates.get(template);
    let text = text.ok_or_else(|| ManifestError::NoTemplate(template.to_owned()))?;
    Ok(fill(text, with, ambient)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_added_and_none_is_overwritten() {
        let mut manifest =
            json!({"metadata": {"name": "vm", "labels": {"virtmark.dev/owned": "no"}}});
        add_labels(
            &mut manifest,
            &labels("r1", &"VM-LIFE-0001".parse().unwrap()),
        );
        assert_eq!(
            manifest["metadata"]["labels"],
            json!({"virtmark.dev/owned": "no", "virtmark.dev/run": "r1", "virtmark.dev/scenario": "VM-LIFE-0001"})
        );
    }

    #[test]
    fn an_object_without_metadata_gets_some() {
        let mut manifest = json!({"kind": "Pod"});
        add_labels(&mut manifest, &json!({"a": "b"}));
        assert_eq!(
            manifest,
            json!({"kind": "Pod", "metadata": {"labels": {"a": "b"}}})
        );
    }
}
