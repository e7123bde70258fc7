//! Probes of a guest: those of a container, and a ping of the guest agent.

use k8s_openapi::api::core::v1::{self as core, ExecAction, HTTPGetAction, TCPSocketAction};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a guest counts as ready, or as dead.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Probe {
    /// Run a command in the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exec: Option<ExecAction>,
    /// Ask the guest agent for a sign of life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_agent_ping: Option<GuestAgentPing>,
    /// Ask for an HTTP answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_get: Option<HTTPGetAction>,
    /// Open a TCP connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_socket: Option<TCPSocketAction>,
    /// Seconds before the first try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial_delay_seconds: Option<i32>,
    /// Seconds that a try may take; 1 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<i32>,
    /// Seconds between tries; 10 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<i32>,
    /// Successes in a row that count; 1 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<i32>,
    /// Failures in a row that count; 3 when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<i32>,
}

/// A ping of the guest agent; no options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GuestAgentPing {}

impl From<&Probe> for core::Probe {
    fn from(probe: &Probe) -> Self {
        Self {
            exec: probe.exec.clone(),
            http_get: probe.http_get.clone(),
            tcp_socket: probe.tcp_socket.clone(),
            initial_delay_seconds: probe.initial_delay_seconds,
            timeout_seconds: probe.timeout_seconds,
            period_seconds: probe.period_seconds,
            success_threshold: probe.success_threshold,
            failure_threshold: probe.failure_threshold,
            ..Self::default()
        }
    }
}
