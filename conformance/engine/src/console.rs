//! Sessions on serial consoles, each with the name that the scenario gives its client.
//!
//! What the guest says goes into the journal line by line as it comes; a step looks for its text there and nowhere
//! else, so that judging the journal again finds the same.

pub mod socket;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use conformance_journal::{Event, entry::ConsoleWhat};
use futures::{SinkExt as _, StreamExt as _, stream::SplitSink};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_tungstenite::tungstenite::{Error as WsError, Message};

use crate::{
    console::socket::{OpenError, Socket},
    log::Log,
    wire::{Wire, path},
};

/// A line without an end, such as a prompt, is written down after this much silence.
const LULL: Duration = Duration::from_millis(50);
/// A line is cut at this length: a guest may never end one.
const LONGEST: usize = 16 * 1024;

/// All sessions of a scenario, open or ended.
pub struct Consoles {
    wire: Wire,
    log: Arc<Log>,
    namespace: String,
    sessions: Mutex<BTreeMap<String, Session>>,
}

struct Session {
    out: mpsc::Sender<String>,
    reader: JoinHandle<()>,
}

/// Something that cannot be done with a session.
#[derive(Debug, thiserror::Error)]
pub enum ConsoleError {
    /// It could not be opened.
    #[error("failed to open the console of {vmi}")]
    Open {
        /// The VMI.
        vmi: String,
        /// Why.
        source: OpenError,
    },
    /// It took too long to open.
    #[error("the console of {vmi} did not open within {limit:?}")]
    Slow {
        /// The VMI.
        vmi: String,
        /// The limit.
        limit: Duration,
    },
    /// The other side has ended it.
    #[error("the session of client {0} is closed")]
    Closed(String),
}

impl Consoles {
    /// No sessions yet.
    pub fn new(wire: Wire, log: Arc<Log>, namespace: String) -> Self {
        Self {
            wire,
            log,
            namespace,
            sessions: Mutex::default(),
        }
    }

    /// Opens the client's session at the first use of its name. An ended session stays ended: a scenario that wants
    /// another one names another client.
    pub async fn ensure(
        &self,
        vmi: &str,
        client: &str,
        limit: Duration,
    ) -> Result<(), ConsoleError> {
        if self.has_met(client) {
            return Ok(());
        }
        let path = path::subresource(&self.namespace, "virtualmachineinstances", vmi, "console");
        let opening = tokio::time::timeout(limit, socket::open(&self.wire, &path)).await;
        let socket = match opening {
            Ok(Ok(socket)) => socket,
            Ok(Err(source)) => {
                self.note(vmi, client, ConsoleWhat::Failed, source.to_string());
                return Err(ConsoleError::Open {
                    vmi: vmi.to_owned(),
                    source,
                });
            }
            Err(_) => {
                self.note(
                    vmi,
                    client,
                    ConsoleWhat::Failed,
                    format!("not open within {limit:?}"),
                );
                return Err(ConsoleError::Slow {
                    vmi: vmi.to_owned(),
                    limit,
                });
            }
        };
        self.note(vmi, client, ConsoleWhat::Opened, String::new());
        let (out, orders) = mpsc::channel(16);
        let speaker = Speaker {
            log: self.log.clone(),
            vmi: vmi.to_owned(),
            client: client.to_owned(),
        };
        let reader = tokio::spawn(serve(socket, orders, speaker));
        let session = Session { out, reader };
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.insert(client.to_owned(), session);
        Ok(())
    }

    fn has_met(&self, client: &str) -> bool {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.contains_key(client)
    }

    /// Sends a line.
    pub async fn send(&self, client: &str, text: &str) -> Result<(), ConsoleError> {
        let closed = || ConsoleError::Closed(client.to_owned());
        let out = {
            let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
            sessions.get(client).map(|session| session.out.clone())
        };
        let line = if text.ends_with('\n') {
            text.to_owned()
        } else {
            format!("{text}\n")
        };
        out.ok_or_else(closed)?
            .send(line)
            .await
            .map_err(|_| closed())
    }

    /// Ends all sessions from our side.
    pub fn hang_up(&self) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for session in std::mem::take(&mut *sessions).into_values() {
            session.reader.abort();
        }
    }

    fn note(&self, vmi: &str, client: &str, what: ConsoleWhat, text: String) {
        let speaker = Speaker {
            log: self.log.clone(),
            vmi: vmi.to_owned(),
            client: client.to_owned(),
        };
        speaker.write(what, text);
    }
}

struct Speaker {
    log: Arc<Log>,
    vmi: String,
    client: String,
}

impl Speaker {
    fn write(&self, what: ConsoleWhat, text: String) {
        let (vmi, client) = (self.vmi.clone(), self.client.clone());
        self.log.write(Event::Console {
            vmi,
            client,
            what,
            text,
        });
    }
}

/// Carries text both ways until the other side ends the session or we do.
async fn serve(socket: Socket, mut orders: mpsc::Receiver<String>, speaker: Speaker) {
    let (mut sink, mut stream) = socket.split();
    let mut text = Text::default();
    loop {
        let lull = tokio::time::sleep(LULL);
        tokio::select! {
            frame = stream.next() => match frame {
                Some(Ok(Message::Binary(bytes))) => text.take(&bytes),
                Some(Ok(Message::Text(words))) => text.take(words.as_bytes()),
                Some(Ok(Message::Close(_))) | None => break,
                Some(Ok(_)) => {}
                Some(Err(WsError::ConnectionClosed | WsError::AlreadyClosed)) => break,
                // A relay may cut the connection without a farewell; for the client that is an end all the same.
                Some(Err(_)) => break,
            },
            order = orders.recv() => match order {
                Some(line) if speak(&mut sink, &line).await => speaker.write(ConsoleWhat::Sent, line),
                Some(_) => break,
                None => return,
            },
            () = lull, if !text.is_empty() => {
                speaker.write(ConsoleWhat::Received, text.rest());
            }
        }
        if let Some(lines) = text.lines() {
            speaker.write(ConsoleWhat::Received, lines);
        }
    }
    if !text.is_empty() {
        speaker.write(ConsoleWhat::Received, text.rest());
    }
    speaker.write(ConsoleWhat::Closed, String::new());
}

async fn speak(sink: &mut SplitSink<Socket, Message>, line: &str) -> bool {
    sink.send(Message::binary(line.as_bytes().to_vec()))
        .await
        .is_ok()
}

/// Bytes on their way to become lines.
#[derive(Default)]
struct Text {
    pending: Vec<u8>,
}

impl Text {
    fn take(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// All complete lines, or what there is when a line gets too long.
    fn lines(&mut self) -> Option<String> {
        match self.pending.iter().rposition(|&byte| byte == b'\n') {
            Some(end) => {
                let rest = self.pending.split_off(end + 1);
                Some(lossy(std::mem::replace(&mut self.pending, rest)))
            }
            None if self.pending.len() > LONGEST => Some(self.rest()),
            None => None,
        }
    }

    fn rest(&mut self) -> String {
        lossy(std::mem::take(&mut self.pending))
    }
}

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpListener;
    use tokio_tungstenite::{
        accept_hdr_async,
        tungstenite::handshake::server::{Request, Response},
    };

    use super::*;
    use crate::{
        fake::{Answer, server, wire},
        log::Recorder,
    };

    /// A console that says `ready`, repeats the first line it gets, and hangs up.
    async fn guest() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            #[expect(clippy::result_large_err, reason = "the signature is the library's")]
            let choose = |request: &Request, mut response: Response| {
                assert!(
                    request
                        .uri()
                        .path()
                        .ends_with("/namespaces/ns/virtualmachineinstances/vm/console")
                );
                let asked = request.headers()["sec-websocket-protocol"].clone();
                response
                    .headers_mut()
                    .insert("sec-websocket-protocol", asked);
                Ok(response)
            };
            let mut socket = accept_hdr_async(stream, choose).await.unwrap();
            socket
                .send(Message::binary(b"PROBE 1 ready\n".to_vec()))
                .await
                .unwrap();
            let line = socket.next().await.unwrap().unwrap();
            socket.send(line).await.unwrap();
            socket.close(None).await.unwrap();
        });
        address
    }

    #[tokio::test]
    async fn a_session_is_written_down_from_its_opening_to_its_end() {
        let recorder = Recorder::new(Box::new(Vec::new()), "r");
        let log = Log::new(recorder, "VM-SUB-0002");
        let consoles = Consoles::new(wire(guest().await), log.clone(), "ns".into());
        consoles
            .ensure("vm", "main", Duration::from_secs(5))
            .await
            .unwrap();
        consoles.send("main", "echo hi").await.unwrap();
        let mut growth = log.growth();
        let said = || {
            log.read(|entries| {
                let what = entries.iter().map(|entry| match &entry.event {
                    Event::Console { what, text, .. } => format!("{what:?} {}", text.trim_end()),
                    other => format!("{other:?}"),
                });
                what.collect::<Vec<_>>()
            })
        };
        while !said().contains(&"Closed ".to_owned()) {
            tokio::time::timeout(Duration::from_secs(5), growth.changed())
                .await
                .unwrap()
                .unwrap();
        }
        let said = said();
        assert_eq!(said.first().map(String::as_str), Some("Opened "));
        for line in ["Received PROBE 1 ready", "Sent echo hi", "Received echo hi"] {
            assert!(said.contains(&line.to_owned()), "{said:?}");
        }
        assert!(consoles.send("main", "x").await.is_err());
        // The name has been used: a session that has ended is not opened again behind the scenario's back.
        consoles
            .ensure("vm", "main", Duration::from_secs(5))
            .await
            .unwrap();
        assert_eq!(log.read(|entries| entries.len()), said.len());
    }

    #[tokio::test]
    async fn a_refusal_keeps_what_the_server_said() {
        let (wire, _) = server(|_, _| Answer::Json(400, "VMI is not running")).await;
        let log = Log::new(Recorder::new(Box::new(Vec::new()), "r"), "VM-SUB-0002");
        let consoles = Consoles::new(wire, log, "ns".into());
        let error = consoles
            .ensure("vm", "main", Duration::from_secs(5))
            .await
            .unwrap_err();
        let ConsoleError::Open {
            source: OpenError::Refused { code, body },
            ..
        } = error
        else {
            panic!("{error}");
        };
        assert_eq!((code, body.as_str()), (400, "VMI is not running"));
    }

    #[test]
    fn lines_come_whole_and_rests_on_request() {
        let mut text = Text::default();
        text.take(b"PROBE 1 re");
        assert_eq!(text.lines(), None);
        text.take(b"ady\nlogin: ");
        assert_eq!(text.lines().as_deref(), Some("PROBE 1 ready\n"));
        assert_eq!(text.rest(), "login: ");
        assert!(text.is_empty());
    }

    #[test]
    fn an_endless_line_is_cut() {
        let mut text = Text::default();
        text.take(&vec![b'x'; LONGEST + 1]);
        assert_eq!(text.lines().map(|line| line.len()), Some(LONGEST + 1));
    }

    #[test]
    fn bytes_that_are_not_text_are_survived() {
        let mut text = Text::default();
        text.take(b"\xff\xfe\n");
        assert_eq!(text.lines().as_deref(), Some("\u{fffd}\u{fffd}\n"));
    }
}
