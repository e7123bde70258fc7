//! What a running scenario has at hand: its words, its namespace, its log, the way to the server.

use std::{sync::Arc, time::Duration};

use conformance_journal::Event;
use conformance_judge::Limits;
use conformance_scenario::{Library, Scenario, ScenarioId, model::Deadline, spec::Platform};
use http::Method;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    console::Consoles,
    log::Log,
    manifest,
    progress::{Listener, News},
    retry::Backoff,
    wire::{Call, CallError, Reply, Wire},
};

/// A server that restarts is back within this time; a step waits for it so long and no longer.
const OUTAGE: Duration = Duration::from_secs(30);

/// What all scenarios of a run share.
#[derive(Clone)]
pub struct Shared {
    /// The run's id.
    pub run: String,
    /// Scenarios, templates and data files.
    pub library: Arc<Library>,
    /// Names of the platform's parts.
    pub platform: Arc<Platform>,
    /// The API server.
    pub wire: Wire,
    /// How long things may take here.
    pub limits: Arc<Limits>,
    /// Who hears of progress.
    pub listener: Arc<dyn Listener>,
    /// The operator wants an end.
    pub stop: CancellationToken,
}

/// What one scenario has at hand.
pub struct Stage {
    /// What it shares with the others.
    pub shared: Shared,
    /// Its words.
    pub scenario: Arc<Scenario>,
    /// Its namespace.
    pub namespace: String,
    /// Its part of the journal.
    pub log: Arc<Log>,
    /// Its console sessions.
    pub consoles: Consoles,
    /// What templates may use.
    pub ambient: Map<String, Value>,
}

impl Stage {
    /// Sets the stage; nothing is done yet.
    pub fn new(shared: Shared, scenario: Arc<Scenario>, namespace: String, log: Arc<Log>) -> Self {
        let consoles = Consoles::new(shared.wire.clone(), log.clone(), namespace.clone());
        let ambient = manifest::ambient(&shared.platform, &shared.run, &namespace);
        Self {
            shared,
            scenario,
            namespace,
            log,
            consoles,
            ambient,
        }
    }

    /// The scenario's id.
    pub fn id(&self) -> &ScenarioId {
        self.scenario.id()
    }

    /// The labels of everything that is made here.
    pub fn labels(&self) -> Value {
        manifest::labels(&self.shared.run, self.id())
    }

    /// How long a wait may take here.
    pub fn limit(&self, deadline: &Deadline) -> Duration {
        Duration::from_nanos(self.shared.limits.budget(deadline).limit)
    }

    /// Tells what is being waited for.
    pub fn waiting(&self, what: String, limit: Option<Duration>) {
        let id = self.id().clone();
        self.shared.listener.hear(News::Waiting { id, what, limit });
    }

    /// Asks the server; question and answer go into the journal. A server that cannot be reached is asked again for a
    /// while, because nothing was sent; each of these tries is in the journal too.
    pub async fn ask(&self, step: Option<&str>, call: &Call) -> Result<Reply, CallError> {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(2));
        let mut number = 1;
        let began = tokio::time::Instant::now();
        loop {
            let answer = self.ask_once(step, call).await;
            let (Err(error @ CallError::Unreachable(_)), Some(step)) = (&answer, step) else {
                return answer;
            };
            if began.elapsed() >= OUTAGE {
                return answer;
            }
            number += 1;
            let reason = error.text();
            self.log.write(Event::Try {
                step: step.to_owned(),
                number,
                reason,
            });
            backoff.pause().await;
        }
    }

    async fn ask_once(&self, step: Option<&str>, call: &Call) -> Result<Reply, CallError> {
        let id = self.log.next_call();
        let step = step.map(str::to_owned);
        self.log.write(Event::Request {
            step: step.clone(),
            id,
            method: call.method.to_string(),
            path: call.path.clone(),
            body: call
                .body
                .as_ref()
                .map(|(_, body)| body.clone())
                .unwrap_or_default(),
        });
        let answer = self.shared.wire.call(call).await;
        let (code, body, error) = match &answer {
            Ok(reply) => (reply.code, reply.body.clone(), None),
            Err(error) => (0, Value::Null, Some(error.text())),
        };
        self.log.write(Event::Response {
            step,
            id,
            code,
            body,
            error,
        });
        answer
    }
}

/// A DELETE that takes this very object and no later one of the same name.
pub fn delete_call(path: String, uid: Option<&str>, options: Map<String, Value>) -> Call {
    let mut body = options;
    body.insert("kind".to_owned(), "DeleteOptions".into());
    body.insert("apiVersion".to_owned(), "v1".into());
    if let Some(uid) = uid {
        body.insert("preconditions".to_owned(), json!({"uid": uid}));
    }
    Call::new(Method::DELETE, path).with_body(crate::wire::Content::Json, Value::Object(body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delete_names_the_uid() {
        let call = delete_call("/p".into(), Some("u"), Map::new());
        let (_, body) = call.body.unwrap();
        assert_eq!(body["preconditions"], json!({"uid": "u"}));
        let call = delete_call("/p".into(), None, Map::new());
        assert_eq!(call.body.unwrap().1.get("preconditions"), None);
    }
}
