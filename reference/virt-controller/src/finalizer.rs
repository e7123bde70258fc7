//! Finalizers: adding and dropping them without touching what does not change.

use kube::Resource;

/// Whether the object waits for this finalizer's owner.
pub(crate) fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    let finalizers = object.meta().finalizers.iter().flatten();
    finalizers.into_iter().any(|f| f == finalizer)
}

/// Makes the object wait.
pub(crate) fn add<K: Resource>(object: &mut K, finalizer: &str) {
    if !has(object, finalizer) {
        let finalizers = object.meta_mut().finalizers.get_or_insert_default();
        finalizers.push(finalizer.to_owned());
    }
}

/// Lets the object go as far as this finalizer's owner is concerned.
pub(crate) fn remove<K: Resource>(object: &mut K, finalizer: &str) {
    if let Some(finalizers) = &mut object.meta_mut().finalizers {
        finalizers.retain(|f| f != finalizer);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn adds_once_and_removes_only_its_own() {
        let mut pod = Pod::default();
        remove(&mut pod, "a");
        assert_eq!(pod, Pod::default());
        add(&mut pod, "a");
        add(&mut pod, "b");
        add(&mut pod, "a");
        assert!(has(&pod, "a"));
        remove(&mut pod, "a");
        assert_eq!(pod.metadata.finalizers, Some(vec!["b".to_owned()]));
    }
}
