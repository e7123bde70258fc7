//! One watch per kind, one store behind it, and a call for every object that was touched.
//!
//! A store keeps unreadable objects as such, so that one of them never stops a watch. An object that
//! vanished while the watch was down is reported like a deletion.

use std::{collections::HashSet, fmt::Debug, future::Future, hash::Hash};

use futures::StreamExt as _;
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::{
        WatchStreamExt as _,
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher,
    },
};
use serde::de::DeserializeOwned;
use virt_kit::guard::Guarded;

/// Objects of one kind as the watch last showed them.
pub(crate) type Cache<K> = Store<Guarded<K>>;

/// Starts to fill a store. The future ends never, or when the watch itself cannot go on.
pub(crate) fn follow<K>(
    api: Api<Guarded<K>>,
    config: watcher::Config,
    touched: impl Fn(&Guarded<K>) + Send + 'static,
) -> (Cache<K>, impl Future<Output = ()> + Send + 'static)
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static,
    Guarded<K>: Resource<DynamicType = ()>,
{
    let (store, mut writer) = reflector::store();
    let reader = store.clone();
    let events = watcher(api, config).default_backoff();
    let pump = async move {
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => apply(&mut writer, &reader, event, &touched),
                Err(error) => {
                    tracing::warn!(kind = %K::kind(&()), %error, "watch failed; trying again")
                }
            }
        }
    };
    (store, pump)
}

fn apply<K>(
    writer: &mut Writer<Guarded<K>>,
    reader: &Cache<K>,
    mut event: watcher::Event<Guarded<K>>,
    touched: &impl Fn(&Guarded<K>),
) where
    K: Resource<DynamicType = ()> + Clone + Debug + 'static,
    ObjectRef<Guarded<K>>: Eq + Hash,
{
    use watcher::Event;
    if let Event::Apply(object) | Event::InitApply(object) = &mut event {
        object.managed_fields_mut().clear();
    }
    let before = match event {
        Event::InitDone => reader.state(),
        _ => Vec::new(),
    };
    writer.apply_watcher_event(&event);
    match &event {
        Event::Apply(object) | Event::Delete(object) => touched(object),
        Event::InitDone => {
            let after = reader.state();
            let still_there: HashSet<_> = after.iter().map(|o| ObjectRef::from_obj(&**o)).collect();
            let vanished = before
                .iter()
                .filter(|o| !still_there.contains(&ObjectRef::from_obj(&***o)));
            after.iter().chain(vanished).for_each(|o| touched(o));
        }
        Event::Init | Event::InitApply(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn pod(name: &str, spec: serde_json::Value) -> Guarded<Pod> {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "n"}, "spec": spec
        }))
        .unwrap()
    }

    #[test]
    fn tells_of_objects_that_vanished_while_the_watch_was_down() {
        use watcher::Event;
        let (store, mut writer) = reflector::store();
        let seen = Mutex::new(Vec::new());
        let touched = |o: &Guarded<Pod>| seen.lock().unwrap().push(o.name_any());
        let good = || json!({"containers": []});
        for event in [
            Event::Init,
            Event::InitApply(pod("old", good())),
            Event::InitDone,
            Event::Init,
            Event::InitApply(pod("new", good())),
            Event::InitDone,
        ] {
            apply(&mut writer, &store, event, &touched);
        }
        assert_eq!(*seen.lock().unwrap(), ["old", "new", "old"]);
        assert_eq!(store.state().len(), 1);
    }

    #[test]
    fn keeps_an_unreadable_object_as_such() {
        let (store, mut writer) = reflector::store();
        let bad = pod("bad", json!({"containers": "none"}));
        apply(&mut writer, &store, watcher::Event::Apply(bad), &|_| {});
        assert!(store.state()[0].0.is_err());
    }
}
