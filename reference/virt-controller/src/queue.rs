//! The work queue of one controller: each object is handled by one task at a time, at once when it
//! was touched, later when its handler asks for it, and after a growing pause when it failed.

use std::{
    collections::HashMap,
    convert::Infallible,
    fmt::Debug,
    future::Future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt as _, channel::mpsc};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{
    Resource,
    runtime::{
        controller::{Action, Config, applier},
        reflector::ObjectRef,
    },
};
use thiserror::Error;
use virt_kit::{events::EventType, guard::Guarded};

use crate::{context::Context, watch::Cache};

/// Handlers that run at the same time, for each kind.
const CONCURRENCY: u16 = 16;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Why handling one object failed; it is tried again.
#[derive(Debug, Error)]
pub(crate) enum ReconcileError {
    /// The API server did not do what was asked.
    #[error("failed to {what}")]
    Api {
        what: &'static str,
        #[source]
        source: kube::Error,
    },
}

impl ReconcileError {
    fn cause(&self) -> String {
        let Self::Api { source, .. } = self;
        said(source)
    }

    /// For `map_err`: names what was tried.
    pub(crate) fn api(what: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api { what, source }
    }
}

/// What the server said, without the client's dressing: users read it in conditions and events.
pub(crate) fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

/// Where touched objects are reported.
#[derive(Clone)]
pub(crate) struct Doorbell<K: Resource<DynamicType = ()>>(
    mpsc::UnboundedSender<ObjectRef<Guarded<K>>>,
);

/// The other end of a doorbell.
pub(crate) type Rings<K> = mpsc::UnboundedReceiver<ObjectRef<Guarded<K>>>;

impl<K: Resource<DynamicType = ()>> Doorbell<K> {
    pub(crate) fn new() -> (Self, Rings<K>) {
        let (sender, receiver) = mpsc::unbounded();
        (Self(sender), receiver)
    }

    /// Asks that the object of that name be looked at.
    pub(crate) fn ring(&self, namespace: Option<&str>, name: &str) {
        let mut key = ObjectRef::new(name);
        if let Some(namespace) = namespace {
            key = key.within(namespace);
        }
        // The other end is gone only while the program ends.
        drop(self.0.unbounded_send(key));
    }
}

/// Runs `reconcile` for every object that rings, until the doorbells are gone.
pub(crate) async fn serve<K, F, Fut>(
    context: Arc<Context>,
    store: Cache<K>,
    rings: Rings<K>,
    reconcile: F,
) where
    K: Resource<DynamicType = ()> + Clone + Debug + Send + Sync + 'static,
    F: Fn(Arc<Context>, K) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Action, ReconcileError>> + Send + 'static,
{
    let pauses = Arc::new(Pauses::default());
    let counted = Arc::clone(&pauses);
    let handler = move |object: Arc<Guarded<K>>, context: Arc<Context>| {
        let (reconcile, pauses) = (reconcile.clone(), Arc::clone(&counted));
        Box::pin(async move {
            let action = match object.0.clone() {
                Ok(object) => reconcile(context, object).await?,
                Err(invalid) => report_unreadable(&context, &*object, &invalid.error),
            };
            pauses.forget(&uid(&*object));
            Ok(action)
        })
    };
    let on_error = move |object: Arc<Guarded<K>>, error: &ReconcileError, _: Arc<Context>| {
        let pause = pauses.next(uid(&*object));
        tracing::warn!(
            kind = %K::kind(&()),
            object = %ObjectRef::from_obj(&*object),
            %error,
            cause = %error.cause(),
            retry_in = ?pause,
            "failed to reconcile"
        );
        Action::requeue(pause)
    };
    let config = Config::default().concurrency(CONCURRENCY);
    applier(
        handler,
        on_error,
        context,
        store,
        rings.map(Ok::<_, Infallible>),
        config,
    )
    // Failures were told by `on_error`; what else comes here is an object that is gone.
    .for_each(async |_| {})
    .await;
}

/// A bad object is data: its owner hears of it through an event, and the others go on.
fn report_unreadable<K>(context: &Context, object: &Guarded<K>, error: &str) -> Action
where
    K: Resource<DynamicType = ()>,
{
    context.tell(
        reference::<K, _>(object),
        EventType::Warning,
        "UnreadableObject",
        format!("this object cannot be read and is left alone: {error}"),
    );
    Action::await_change()
}

/// What an event is about. `Named` gives kind and version, since a guarded object has none of its own.
pub(crate) fn reference<Named, K>(object: &K) -> ObjectReference
where
    Named: Resource<DynamicType = ()>,
    K: Resource,
{
    let meta = object.meta();
    ObjectReference {
        api_version: Some(Named::api_version(&()).into_owned()),
        kind: Some(Named::kind(&()).into_owned()),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        resource_version: meta.resource_version.clone(),
        uid: meta.uid.clone(),
        field_path: None,
    }
}

fn uid<K: Resource>(object: &K) -> String {
    object.meta().uid.clone().unwrap_or_default()
}

/// Failures in a row of each object, by uid.
#[derive(Default)]
struct Pauses(Mutex<HashMap<String, u32>>);

impl Pauses {
    fn next(&self, uid: String) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(uid).or_default();
        let pause = FIRST_PAUSE
            .saturating_mul(2_u32.saturating_pow((*count).min(16)))
            .min(LONGEST_PAUSE);
        *count += 1;
        pause
    }

    fn forget(&self, uid: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(uid);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_read_what_the_server_said_and_no_more() {
        let status = kube::core::Status::failure("pods \"a\" is forbidden", "Forbidden");
        let error = kube::Error::Api(Box::new(status.with_code(403)));
        assert_eq!(said(&error), "pods \"a\" is forbidden");
    }

    #[test]
    fn pauses_grow_up_to_a_limit_and_start_again_after_success() {
        let pauses = Pauses::default();
        let first: Vec<u128> = (0..3)
            .map(|_| pauses.next("u".to_owned()).as_millis())
            .collect();
        assert_eq!(first, [200, 400, 800]);
        let last = (0..20).map(|_| pauses.next("u".to_owned())).last();
        assert_eq!(last, Some(LONGEST_PAUSE));
        pauses.forget("u");
        assert_eq!(pauses.next("u".to_owned()), FIRST_PAUSE);
    }
}
