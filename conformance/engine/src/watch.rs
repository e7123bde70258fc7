//! Raw watches: list, then every version that the server sends, in order, stamped when it arrives.
//!
//! No cache merges versions here. When continuity is lost the watch says from when to when, lists again, tells the
//! difference as changes, and goes on; it never pretends to have seen what happened in between.

pub mod decode;
pub mod known;

use std::time::Duration;

use conformance_journal::{Clock, Stamp, entry::Change};
use conformance_scenario::kinds::KindInfo;
use futures::StreamExt as _;
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::Value;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    retry::Backoff,
    watch::{
        decode::{Line, Lines, resource_version},
        known::Known,
    },
    wire::{Call, CallError, Wire, path::with_query},
};

/// The server ends a watch after this long; we give up on a silent one a little later.
const SERVER_LIMIT: Duration = Duration::from_secs(240);
const SILENCE_LIMIT: Duration = Duration::from_secs(270);

/// Which objects.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Their kind.
    pub kind: &'static KindInfo,
    /// Their namespace; ignored for kinds without.
    pub namespace: String,
    /// Labels.
    pub selector: Option<String>,
    /// A field selector, such as one name.
    pub field: Option<String>,
}

impl Scope {
    /// One object.
    pub fn one(kind: &'static KindInfo, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            selector: None,
            field: Some(format!("metadata.name={name}")),
        }
    }
}

/// What a watch has to tell.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// From here on every version is seen.
    Opened {
        /// Where it starts.
        resource_version: String,
    },
    /// A version of an object.
    Seen {
        /// What the server said.
        change: Change,
        /// The whole object.
        object: Value,
    },
    /// Versions between these two moments may have been missed.
    Gap {
        /// Nanoseconds of the clock.
        from: u64,
        /// Nanoseconds of the clock.
        to: u64,
        /// Why.
        reason: String,
    },
    /// The server refuses to list: watching is pointless.
    Refused {
        /// HTTP code.
        code: u16,
        /// What it said.
        message: String,
    },
}

/// Watches until told to stop, until refused, or until nobody listens.
pub async fn follow(
    wire: Wire,
    scope: Scope,
    clock: Clock,
    out: mpsc::Sender<(Stamp, Signal)>,
    stop: CancellationToken,
) {
    let mut watch = Watch {
        wire,
        scope,
        clock,
        out,
        known: Known::default(),
        contact: None,
    };
    let ended = stop.run_until_cancelled(watch.run()).await;
    if ended.is_none() {
        watch.own_up().await;
    }
}

struct Watch {
    wire: Wire,
    scope: Scope,
    clock: Clock,
    out: mpsc::Sender<(Stamp, Signal)>,
    known: Known,
    contact: Option<Contact>,
}

/// How far the history is whole.
struct Contact {
    last: u64,
    lost: Option<String>,
}

/// Why a stretch of watching ended.
enum End {
    /// The server's own limit: go on from the last version, nothing is lost.
    Regular,
    /// Continuity is lost.
    Lost(String),
    /// Refused, or nobody listens.
    Final,
}

impl Watch {
    async fn run(&mut self) {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));
        loop {
            let Some(mut version) = self.list().await else {
                backoff.pause().await;
                if self.out.is_closed() {
                    return;
                }
                continue;
            };
            backoff.reset();
            let reason = loop {
                match self.stretch(&mut version).await {
                    End::Regular => {}
                    End::Lost(reason) => break reason,
                    End::Final => return,
                }
            };
            if let Some(contact) = &mut self.contact {
                contact.lost = Some(reason);
            }
        }
    }

    /// Lists and tells the difference. Nothing when the server cannot be asked.
    async fn list(&mut self) -> Option<String> {
        let path = with_query(&self.collection(), &self.query());
        let reply = match self.wire.call(&Call::get(path)).await {
            Ok(reply) => reply,
            Err(error) => {
                self.blame(&error.text());
                return None;
            }
        };
        if !reply.is_success() {
            self.refused(reply.code, reply.message()).await;
            return None;
        }
        let version = resource_version(&reply.body)?.to_owned();
        let mut body = reply.body;
        let items = body.get_mut("items").map(Value::take);
        let Some(Value::Array(items)) = items else {
            return None;
        };
        let at = self.clock.stamp();
        // The contact is replaced only after the gap was told: a stop in between must not hide it.
        let beginning = match &self.contact {
            None => Signal::Opened {
                resource_version: version.clone(),
            },
            Some(contact) => Signal::Gap {
                from: contact.last,
                to: at.t,
                reason: contact
                    .lost
                    .clone()
                    .unwrap_or_else(|| "listed again".to_owned()),
            },
        };
        for (change, object) in self.known.relist(items) {
            self.tell(at, Signal::Seen { change, object }).await;
        }
        self.tell(at, beginning).await;
        self.contact = Some(Contact {
            last: at.t,
            lost: None,
        });
        Some(version)
    }

    /// One request's worth of watching.
    async fn stretch(&mut self, version: &mut String) -> End {
        let request = match self.request(version) {
            Ok(request) => request,
            Err(error) => return End::Lost(error.to_string()),
        };
        let response = tokio::time::timeout(SILENCE_LIMIT, self.wire.client().send(request)).await;
        let response = match response {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return End::Lost(CallError::of(error).text()),
            Err(_) => return End::Lost("the watch was not answered".to_owned()),
        };
        if !response.status().is_success() {
            return End::Lost(format!("the watch was answered with {}", response.status()));
        }
        let mut body = response.into_body().into_data_stream();
        let mut lines = Lines::default();
        loop {
            let piece = tokio::time::timeout(SILENCE_LIMIT, body.next()).await;
            let at = self.clock.stamp();
            match piece {
                Ok(Some(Ok(bytes))) => {
                    for line in lines.take(&bytes) {
                        if let Some(end) = self.take(at, line, version).await {
                            return end;
                        }
                    }
                }
                Ok(None) => return End::Regular,
                Ok(Some(Err(error))) => return End::Lost(CallError::Broken(error.into()).text()),
                Err(_) => return End::Lost(format!("nothing was heard for {SILENCE_LIMIT:?}")),
            }
        }
    }

    async fn take(&mut self, at: Stamp, line: Line, version: &mut String) -> Option<End> {
        if let Some(contact) = &mut self.contact {
            contact.last = at.t;
        }
        match line {
            Line::Seen(change, object) => {
                if let Some(new) = resource_version(&object) {
                    new.clone_into(version);
                }
                self.known.learn(change, &object);
                let listening = self.tell(at, Signal::Seen { change, object }).await;
                (!listening).then_some(End::Final)
            }
            Line::Bookmark(new) => {
                *version = new;
                None
            }
            Line::Expired(reason) | Line::Trouble(reason) => Some(End::Lost(reason)),
        }
    }

    /// A refusal ends a watch that never began; one that was open may come back.
    async fn refused(&mut self, code: u16, message: String) {
        if self.contact.is_none() && (400..500).contains(&code) && code != 429 {
            let at = self.clock.stamp();
            self.tell(at, Signal::Refused { code, message }).await;
            // Nothing more will come: the listener closes its end on a refusal.
            self.out.closed().await;
        } else {
            self.blame(&format!("the list was answered with {code}: {message}"));
        }
    }

    fn blame(&mut self, why: &str) {
        if let Some(contact) = &mut self.contact {
            contact.lost.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Told to stop while contact was lost: what was missed must be said.
    async fn own_up(&mut self) {
        let Some(Contact {
            last,
            lost: Some(reason),
        }) = self.contact.take()
        else {
            return;
        };
        let at = self.clock.stamp();
        self.tell(
            at,
            Signal::Gap {
                from: last,
                to: at.t,
                reason,
            },
        )
        .await;
    }

    /// True while somebody listens.
    async fn tell(&self, at: Stamp, signal: Signal) -> bool {
        self.out.send((at, signal)).await.is_ok()
    }

    fn collection(&self) -> String {
        self.scope.kind.collection_path(&self.scope.namespace)
    }

    fn query(&self) -> Vec<(&'static str, &str)> {
        let mut query = Vec::new();
        if let Some(selector) = &self.scope.selector {
            query.push(("labelSelector", selector.as_str()));
        }
        if let Some(field) = &self.scope.field {
            query.push(("fieldSelector", field.as_str()));
        }
        query
    }

    fn request(&self, version: &str) -> Result<Request<Body>, http::Error> {
        let limit = SERVER_LIMIT.as_secs().to_string();
        let mut query = self.query();
        query.extend([
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &limit),
            ("resourceVersion", version),
        ]);
        Request::get(with_query(&self.collection(), &query))
            .header(header::ACCEPT, "application/json")
            .body(Body::empty())
    }
}

/// Waits until an object is seen of which `wanted` makes something.
pub async fn until<T>(
    wire: &Wire,
    scope: Scope,
    clock: Clock,
    limit: Duration,
    mut wanted: impl FnMut(Change, &Value) -> Option<T>,
) -> Option<T> {
    let (out, mut signals) = mpsc::channel(64);
    let stop = CancellationToken::new();
    let _stopped = stop.clone().drop_guard();
    tokio::spawn(follow(wire.clone(), scope, clock, out, stop));
    let deadline = Instant::now() + limit;
    while let Ok(Some((_, signal))) = tokio::time::timeout_at(deadline, signals.recv()).await {
        match signal {
            Signal::Seen { change, object } => {
                if let Some(found) = wanted(change, &object) {
                    return Some(found);
                }
            }
            Signal::Refused { .. } => return None,
            Signal::Opened { .. } | Signal::Gap { .. } => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
