//! core/v1 Events: the form that `kubectl describe` and KubeVirt's clients read. The same event on
//! the same object is counted up instead of written again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::json;

/// Weight of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Things go as they should.
    Normal,
    /// Somebody should look.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

type Key = (String, String, String, EventType);

/// Remembered events; forgotten all at once beyond this number, so that memory stays bounded.
const MAX_REMEMBERED: usize = 4096;

/// Publishes events on behalf of one component.
#[derive(Clone)]
pub struct EventRecorder {
    client: Client,
    component: &'static str,
    host: Option<String>,
    seen: Arc<Mutex<HashMap<Key, (String, i32)>>>,
}

impl EventRecorder {
    /// `component` is the source that readers see, such as `virt-handler`.
    #[must_use]
    pub fn new(client: Client, component: &'static str) -> Self {
        Self {
            client,
            component,
            host: std::env::var("NODE_NAME").ok(),
            seen: Arc::default(),
        }
    }

    /// Publishes one event. A failure is logged and forgotten: events are best effort.
    pub async fn publish(
        &self,
        about: &ObjectReference,
        type_: EventType,
        reason: &str,
        message: &str,
    ) {
        if let Err(error) = self.try_publish(about, type_, reason, message).await {
            tracing::warn!(reason, %error, "failed to publish an event");
        }
    }

    async fn try_publish(
        &self,
        about: &ObjectReference,
        type_: EventType,
        reason: &str,
        message: &str,
    ) -> Result<(), kube::Error> {
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let api: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        let key = (
            about.uid.clone().unwrap_or_default(),
            reason.to_owned(),
            message.to_owned(),
            type_,
        );
        if let Some((name, count)) = self.count_up(&key) {
            let patch = json!({"count": count, "lastTimestamp": Time(Timestamp::now())});
            let params = PatchParams::default();
            match api.patch(&name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => return Ok(()),
                Err(error) if crate::retry::is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let event = self.event(about, namespace, type_, reason, message);
        let name = event.metadata.name.clone().unwrap_or_default();
        api.create(&PostParams::default(), &event).await?;
        self.remember(key, name);
        Ok(())
    }

    fn count_up(&self, key: &Key) -> Option<(String, i32)> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = seen.get_mut(key)?;
        entry.1 += 1;
        Some(entry.clone())
    }

    fn remember(&self, key: Key, name: String) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= MAX_REMEMBERED {
            seen.clear();
        }
        seen.insert(key, (name, 1));
    }

    fn event(
        &self,
        about: &ObjectReference,
        namespace: &str,
        type_: EventType,
        reason: &str,
        message: &str,
    ) -> Event {
        let now = Timestamp::now();
        let subject = about.name.as_deref().unwrap_or("unknown");
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{subject}.{:x}", now.as_nanosecond())),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: about.clone(),
            type_: Some(type_.as_str().to_owned()),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource {
                component: Some(self.component.to_owned()),
                host: self.host.clone(),
            }),
            reporting_component: Some(self.component.to_owned()),
            reporting_instance: self.host.clone(),
            ..Event::default()
        }
    }
}
