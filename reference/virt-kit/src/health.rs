//! `/healthz`, `/readyz` and `/metrics`: alive when it answers, ready when every named part says so.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use prometheus_client::{encoding::text::encode, registry::Registry};

/// Readiness of the parts of one component, and its metrics.
#[derive(Clone, Default)]
pub struct Health {
    parts: Arc<Mutex<BTreeMap<&'static str, bool>>>,
    registry: Arc<Mutex<Registry>>,
}

impl Health {
    /// No parts yet: ready.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Says whether a part is ready. A part counts from its first mention on.
    pub fn set_ready(&self, part: &'static str, ready: bool) {
        self.parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(part, ready);
    }

    /// The parts that are not ready.
    #[must_use]
    pub fn missing(&self) -> Vec<&'static str> {
        self.parts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .filter_map(|(part, ready)| (!ready).then_some(*part))
            .collect()
    }

    /// Registers metrics; call once for each metric.
    pub fn register(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn ready_answer(&self) -> (StatusCode, String) {
        let missing = self.missing();
        if missing.is_empty() {
            (StatusCode::OK, "ok".to_owned())
        } else {
            (
                StatusCode::SERVICE_UNAVAILABLE,
                format!("not ready: {}", missing.join(", ")),
            )
        }
    }

    fn metrics_answer(&self) -> (StatusCode, String) {
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        match encode(&mut text, &registry) {
            Ok(()) => (StatusCode::OK, text),
            Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, String::new()),
        }
    }

    /// The three endpoints.
    pub fn router(&self) -> Router {
        let (ready, metrics) = (self.clone(), self.clone());
        Router::new()
            .route("/healthz", get(async || "ok"))
            .route(
                "/readyz",
                get(move || async move { ready.ready_answer().into_response() }),
            )
            .route(
                "/metrics",
                get(move || async move { metrics.metrics_answer().into_response() }),
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_only_when_every_part_is() {
        let health = Health::new();
        assert_eq!(health.ready_answer().0, StatusCode::OK);
        health.set_ready("watch", false);
        health.set_ready("server", true);
        assert_eq!(
            health.ready_answer(),
            (
                StatusCode::SERVICE_UNAVAILABLE,
                "not ready: watch".to_owned()
            )
        );
        health.set_ready("watch", true);
        assert_eq!(health.ready_answer().0, StatusCode::OK);
    }
}
