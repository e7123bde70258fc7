//! The watches of one scenario: one per kind and namespace, each written down as it comes.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use conformance_journal::{Event, Stamp};
use conformance_scenario::{
    kinds::{self, KindInfo},
    model::Record,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use crate::{
    log::Log,
    stage::Stage,
    watch::{Scope, Signal, follow},
};

/// A watch is open within this time or the scenario is not begun.
const OPENING: Duration = Duration::from_secs(30);
/// Signals on their way from a watch to the journal.
const BUFFER: usize = 1024;

/// Open watches.
pub struct Recording {
    stop: CancellationToken,
    writers: JoinSet<()>,
}

/// A watch that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A kind that is not in the table.
    #[error("the suite does not know the kind {0}")]
    UnknownKind(String),
    /// The server refuses.
    #[error("cannot watch {kind}: {code} {message}")]
    Refused {
        /// The kind.
        kind: &'static str,
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
    /// The server does not answer.
    #[error("the watch of {kind} did not open within {limit:?}")]
    Late {
        /// The kind.
        kind: &'static str,
        /// The limit.
        limit: Duration,
    },
}

impl Recording {
    /// Opens all watches of the scenario and returns when each is open.
    pub async fn open(stage: &Stage) -> Result<Self, OpenError> {
        let mut recording = Self {
            stop: CancellationToken::new(),
            writers: JoinSet::new(),
        };
        let mut openings = Vec::new();
        for scope in scopes(&stage.scenario.spec.record, &stage.namespace)? {
            let (out, signals) = mpsc::channel(BUFFER);
            let (opened, opening) = oneshot::channel();
            openings.push((scope.kind.kind, opening));
            let (wire, clock) = (stage.shared.wire.clone(), stage.log.clock());
            recording.writers.spawn(follow(
                wire,
                scope.clone(),
                clock,
                out,
                recording.stop.clone(),
            ));
            recording
                .writers
                .spawn(write_down(scope, signals, stage.log.clone(), opened));
        }
        for (kind, opening) in openings {
            match tokio::time::timeout(OPENING, opening).await {
                Ok(Ok(Ok(()))) => {}
                Ok(Ok(Err((code, message)))) => {
                    return Err(OpenError::Refused {
                        kind,
                        code,
                        message,
                    });
                }
                Ok(Err(_)) | Err(_) => {
                    return Err(OpenError::Late {
                        kind,
                        limit: OPENING,
                    });
                }
            }
        }
        Ok(recording)
    }

    /// Closes all watches; returns when everything they have to say is written down.
    pub async fn close(mut self) {
        self.stop.cancel();
        while self.writers.join_next().await.is_some() {}
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// One watch per kind and namespace. Two records of one kind with different labels become one watch of all.
fn scopes(records: &[Record], home: &str) -> Result<Vec<Scope>, OpenError> {
    let mut scopes: BTreeMap<(&str, &str), Scope> = BTreeMap::new();
    for record in records {
        let kind: &KindInfo =
            kinds::find(&record.kind).ok_or_else(|| OpenError::UnknownKind(record.kind.clone()))?;
        let namespace = record.namespace.as_deref().unwrap_or(home);
        let selector = record
            .selector
            .as_ref()
            .map(|selector| selector.as_str().to_owned());
        scopes
            .entry((kind.kind, namespace))
            .and_modify(|scope| {
                if scope.selector != selector {
                    scope.selector = None;
                }
            })
            .or_insert_with(|| Scope {
                kind,
                namespace: namespace.to_owned(),
                selector,
                field: None,
            });
    }
    Ok(scopes.into_values().collect())
}

type Opened = Result<(), (u16, String)>;

async fn write_down(
    scope: Scope,
    mut signals: mpsc::Receiver<(Stamp, Signal)>,
    log: Arc<Log>,
    opened: oneshot::Sender<Opened>,
) {
    let mut opened = Some(opened);
    let namespace = scope.kind.namespaced.then(|| scope.namespace.clone());
    let kind = scope.kind.kind.to_owned();
    while let Some((at, signal)) = signals.recv().await {
        let event = match signal {
            Signal::Opened { resource_version } => {
                log.write_at(
                    at,
                    Event::Watch {
                        kind: kind.clone(),
                        namespace: namespace.clone(),
                        selector: scope.selector.clone(),
                        resource_version,
                    },
                );
                tell(&mut opened, Ok(()));
                continue;
            }
            Signal::Refused { code, message } => {
                tell(&mut opened, Err((code, message)));
                return;
            }
            Signal::Seen { change, object } => Event::Observe {
                change,
                kind: kind.clone(),
                object,
            },
            Signal::Gap { from, to, reason } => Event::Gap {
                kind: kind.clone(),
                namespace: namespace.clone(),
                from,
                to,
                reason,
            },
        };
        log.write_at(at, event);
    }
}

fn tell(opened: &mut Option<oneshot::Sender<Opened>>, word: Opened) {
    if let Some(opened) = opened.take() {
        // Nobody waits any more when another watch was refused first.
        let _ = opened.send(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: &str, selector: Option<&str>, namespace: Option<&str>) -> Record {
        Record {
            kind: kind.into(),
            name: None,
            selector: selector.map(|text| text.parse().unwrap()),
            namespace: namespace.map(Into::into),
        }
    }

    #[test]
    fn one_watch_per_kind_and_namespace() {
        let records = [
            record("Pod", Some("a=1"), None),
            record("Pod", Some("b=1"), None),
            record("VirtualMachine", Some("a=1"), None),
            record("KubeVirt", None, Some("kubevirt")),
        ];
        let found: Vec<_> = scopes(&records, "home")
            .unwrap()
            .into_iter()
            .map(|scope| (scope.kind.kind, scope.namespace, scope.selector))
            .collect();
        assert_eq!(
            found,
            [
                ("KubeVirt", "kubevirt".to_owned(), None),
                ("Pod", "home".to_owned(), None),
                ("VirtualMachine", "home".to_owned(), Some("a=1".to_owned())),
            ]
        );
    }

    #[test]
    fn an_unknown_kind_is_said() {
        assert!(scopes(&[record("Banana", None, None)], "home").is_err());
    }
}
