//! What a watch has seen last, so that a new list after a gap can be told as changes.

use std::collections::BTreeMap;

use conformance_journal::entry::Change;
use serde_json::Value;

use crate::watch::decode::resource_version;

/// The last version of each object, by uid.
#[derive(Debug, Default)]
pub struct Known {
    objects: BTreeMap<String, Value>,
}

impl Known {
    /// Remembers a change that the watch told.
    pub fn learn(&mut self, change: Change, object: &Value) {
        match change {
            Change::Deleted => {
                self.objects.remove(&identity(object));
            }
            _ => {
                self.objects.insert(identity(object), object.clone());
            }
        }
    }

    /// Takes a whole new list; gives the changes that lead there. Deletions come first: a name may be in use again.
    pub fn relist(&mut self, items: Vec<Value>) -> Vec<(Change, Value)> {
        let fresh: BTreeMap<String, Value> = items
            .into_iter()
            .map(|item| (identity(&item), item))
            .collect();
        let old = std::mem::take(&mut self.objects);
        let mut changes: Vec<_> = old
            .iter()
            .filter(|(id, _)| !fresh.contains_key(*id))
            .map(|(_, object)| (Change::Deleted, object.clone()))
            .collect();
        for (id, object) in &fresh {
            match old.get(id) {
                None => changes.push((Change::Added, object.clone())),
                Some(before) if resource_version(before) != resource_version(object) => {
                    changes.push((Change::Modified, object.clone()));
                }
                Some(_) => {}
            }
        }
        self.objects = fresh;
        changes
    }
}

fn identity(object: &Value) -> String {
    let meta = |key: &str| {
        object
            .pointer(&format!("/metadata/{key}"))
            .and_then(Value::as_str)
    };
    match meta("uid") {
        Some(uid) => uid.to_owned(),
        None => format!(
            "{}/{}",
            meta("namespace").unwrap_or_default(),
            meta("name").unwrap_or_default()
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, uid: &str, version: &str) -> Value {
        json!({"metadata": {"name": name, "uid": uid, "resourceVersion": version}})
    }

    #[test]
    fn a_new_list_is_told_as_changes() {
        let mut known = Known::default();
        let first = known.relist(vec![
            object("a", "1", "1"),
            object("b", "2", "1"),
            object("c", "3", "1"),
        ]);
        assert!(first.iter().all(|(change, _)| *change == Change::Added));
        known.learn(Change::Modified, &object("c", "3", "4"));
        let changes = known.relist(vec![
            object("a", "1", "1"),
            object("b", "9", "7"),
            object("c", "3", "5"),
        ]);
        assert_eq!(
            changes,
            [
                (Change::Deleted, object("b", "2", "1")),
                (Change::Modified, object("c", "3", "5")),
                (Change::Added, object("b", "9", "7")),
            ]
        );
    }

    #[test]
    fn what_the_watch_told_is_not_told_again() {
        let mut known = Known::default();
        known.learn(Change::Added, &object("a", "1", "1"));
        known.learn(Change::Deleted, &object("a", "1", "2"));
        assert!(known.relist(Vec::new()).is_empty());
    }
}
