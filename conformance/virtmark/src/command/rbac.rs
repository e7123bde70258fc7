//! `rbac`: the rights that a run of the selection needs, as a ClusterRole to apply.

use std::collections::{BTreeMap, BTreeSet};

use conformance_report::ExitCode;
use conformance_scenario::{
    Library, Scenario,
    kinds::{self, KindInfo},
    library::Loaded,
    model::{Action, Exclusive, step::Write},
};
use serde_json::{Value, json};

use crate::{
    cli::PlanArgs,
    command::{json, select::select},
    printer::Printer,
    problem::Outcome,
    suite,
};

/// Verbs by group and resource.
type Rights = BTreeMap<(String, String), BTreeSet<&'static str>>;

pub(super) fn run(args: &PlanArgs, printer: &Printer) -> Outcome {
    let library = suite::load_sound(&args.suite)?;
    let selected = select(&library, &args.select)?;
    printer.data(&json(&role(&rights(&library, &selected)))?);
    printer.say("apply it with `kubectl apply -f -` and bind it to the identity of the run");
    Ok(ExitCode::Holds)
}

fn rights(library: &Library, selected: &[&Loaded<Scenario>]) -> Rights {
    let mut rights = Rights::new();
    let mut allow = |group: &str, resource: &str, verbs: &[&'static str]| {
        rights
            .entry((group.to_owned(), resource.to_owned()))
            .or_default()
            .extend(verbs);
    };
    allow("", "namespaces", &["create", "delete", "get"]);
    allow("", "nodes", &["list"]);
    allow("", "serviceaccounts", &["list", "watch"]);
    for kind in ["VirtualMachine", "VirtualMachineInstance", "Pod", "Event"]
        .into_iter()
        .filter_map(kinds::find)
    {
        allow(group(kind), kind.plural, &["list"]);
    }
    allow("", "pods/log", &["get"]);
    allow("kubevirt.io", "kubevirts", &["get"]);
    for loaded in selected {
        let spec = &loaded.value.spec;
        for kind in spec
            .record
            .iter()
            .filter_map(|record| kinds::find(&record.kind))
        {
            allow(group(kind), kind.plural, &["list", "watch"]);
        }
        if spec.exclusive == Exclusive::Cluster {
            allow("kubevirt.io", "kubevirts", &["list", "watch", "patch"]);
        }
        for step in &spec.steps {
            match &step.action {
                Action::Apply(write) => with_kind(
                    kind_of(library, &loaded.value, write),
                    &["patch", "create"],
                    &mut allow,
                ),
                Action::Create(write) => with_kind(
                    kind_of(library, &loaded.value, write),
                    &["create"],
                    &mut allow,
                ),
                Action::Patch(patch) => with_kind(kinds::find(&patch.kind), &["patch"], &mut allow),
                Action::Delete(delete) => with_kind(
                    kinds::find(&delete.kind),
                    &["get", "list", "delete"],
                    &mut allow,
                ),
                Action::Get(get) => with_kind(kinds::find(&get.kind), &["get"], &mut allow),
                Action::Subresource(call) => {
                    let resource = format!("{}/{}", call.resource.plural(), call.verb);
                    allow("subresources.kubevirt.io", &resource, &["update"]);
                }
                Action::Console(_) => {
                    allow(
                        "subresources.kubevirt.io",
                        "virtualmachineinstances/console",
                        &["get"],
                    );
                }
                Action::KillMachine(_) => {
                    allow("", "pods", &["create", "delete", "get", "list", "watch"]);
                    allow("kubevirt.io", "virtualmachineinstances", &["get"]);
                }
                Action::WaitFor(_) | Action::Settle(_) => {}
            }
        }
    }
    rights
}

fn with_kind(
    kind: Option<&'static KindInfo>,
    verbs: &[&'static str],
    allow: &mut impl FnMut(&str, &str, &[&'static str]),
) {
    if let Some(kind) = kind {
        allow(group(kind), kind.plural, verbs);
    }
}

fn kind_of(library: &Library, scenario: &Scenario, write: &Write) -> Option<&'static KindInfo> {
    let template = match (&write.template, &write.manifest) {
        (Some(template), _) => library.templates.get(template)?,
        (None, Some(manifest)) => manifest,
        (None, None) => library
            .templates
            .get(&scenario.spec.base.as_ref()?.template)?,
    };
    kinds::find(template.get("kind")?.as_str()?)
}

fn group(kind: &KindInfo) -> &'static str {
    kind.api_version
        .split_once('/')
        .map_or("", |(group, _)| group)
}

fn role(rights: &Rights) -> Value {
    let rules: Vec<Value> = rights
        .iter()
        .map(|((group, resource), verbs)| json!({"apiGroups": [group], "resources": [resource], "verbs": verbs}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "virtmark"},
        "rules": rules,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{SelectArgs, SuiteArgs};

    fn of(id: &str) -> Rights {
        let library = suite::load(&SuiteArgs {
            scenarios: None,
            spec: None,
        })
        .unwrap();
        let args = SelectArgs {
            filter: None,
            ids: vec![id.to_owned()],
        };
        rights(&library, &select(&library, &args).unwrap())
    }

    fn may(rights: &Rights, group: &str, resource: &str, verb: &str) -> bool {
        let key = (group.to_owned(), resource.to_owned());
        rights.get(&key).is_some_and(|verbs| verbs.contains(verb))
    }

    #[test]
    fn only_what_the_selection_does_is_asked_for() {
        let stop = of("VM-LIFE-0002");
        assert!(may(
            &stop,
            "subresources.kubevirt.io",
            "virtualmachines/stop",
            "update"
        ));
        assert!(may(&stop, "kubevirt.io", "virtualmachines", "patch"));
        assert!(!may(&stop, "", "pods", "create"));
        assert!(!may(&stop, "kubevirt.io", "kubevirts", "patch"));
        assert!(may(&of("VM-LIFE-0006"), "", "pods", "create"));
        assert!(may(
            &of("VM-NODE-0002"),
            "kubevirt.io",
            "kubevirts",
            "patch"
        ));
    }
}
