//! A small client for QEMU's machine protocol: one JSON object per line, answers matched by id.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    time::timeout,
};

/// QEMU answers at once unless its main loop hangs.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Events that may wait for their reader.
const EVENT_BACKLOG: usize = 64;
/// No message that we ask for is longer.
const LONGEST_LINE: u64 = 1 << 20;

/// An asynchronous message.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QmpEvent {
    pub(super) name: String,
    pub(super) data: Value,
}

/// Why a command was not carried out.
#[derive(Debug, Error)]
pub(super) enum QmpError {
    /// The other side went away.
    #[error("the QMP connection was closed")]
    Closed,
    /// Writing or reading failed.
    #[error("the QMP connection failed")]
    Socket(#[from] io::Error),
    /// Not QMP.
    #[error("the QMP peer sent something else")]
    Malformed(#[from] serde_json::Error),
    /// No answer.
    #[error("QEMU did not answer `{0}`")]
    Silent(&'static str),
    /// QEMU's own error.
    #[error("QEMU refused `{command}`: {reason}")]
    Refused {
        command: &'static str,
        reason: String,
    },
}

/// A connection; clones share it.
#[derive(Clone)]
pub(super) struct Qmp {
    shared: Arc<Shared>,
}

struct Shared {
    writer: AsyncMutex<OwnedWriteHalf>,
    waiting: Mutex<Waiting>,
    next_id: AtomicU64,
}

/// `None` once the connection is closed: nobody may start to wait then.
type Waiting = Option<BTreeMap<u64, oneshot::Sender<Answer>>>;
type Answer = Result<Value, String>;

#[derive(Deserialize)]
#[serde(untagged)]
enum Message {
    Greeting {
        #[serde(rename = "QMP")]
        _qmp: Value,
    },
    Event {
        event: String,
        #[serde(default)]
        data: Value,
    },
    Error {
        error: Complaint,
        id: u64,
    },
    Return {
        #[serde(rename = "return")]
        value: Value,
        id: u64,
    },
}

#[derive(Deserialize)]
struct Complaint {
    desc: String,
}

impl Qmp {
    /// Waits for the greeting and leaves negotiation mode. The receiver ends with the connection.
    pub(super) async fn greet(
        stream: UnixStream,
    ) -> Result<(Self, mpsc::Receiver<QmpEvent>), QmpError> {
        let (reader, writer) = stream.into_split();
        let mut reader = BufReader::new(reader);
        match read_message(&mut reader).await? {
            Some(Message::Greeting { .. }) => {}
            Some(_) | None => return Err(QmpError::Closed),
        }
        let shared = Arc::new(Shared {
            writer: AsyncMutex::new(writer),
            waiting: Mutex::new(Some(BTreeMap::new())),
            next_id: AtomicU64::new(1),
        });
        let (events, receiver) = mpsc::channel(EVENT_BACKLOG);
        tokio::spawn(dispatch(reader, Arc::clone(&shared), events));
        let qmp = Self { shared };
        qmp.execute("qmp_capabilities").await?;
        Ok((qmp, receiver))
    }

    /// Carries out a command that takes no arguments.
    pub(super) async fn execute(&self, command: &'static str) -> Result<(), QmpError> {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.shared
            .waiting()
            .as_mut()
            .ok_or(QmpError::Closed)?
            .insert(id, sender);
        let line = format!("{}\n", json!({ "execute": command, "id": id }));
        let exchange = async {
            self.shared
                .writer
                .lock()
                .await
                .write_all(line.as_bytes())
                .await?;
            answer.await.map_err(|_| QmpError::Closed)
        };
        match timeout(ANSWER_WAIT, exchange).await {
            Ok(answer) => answer?
                .map(drop)
                .map_err(|reason| QmpError::Refused { command, reason }),
            Err(_) => {
                if let Some(waiting) = self.shared.waiting().as_mut() {
                    waiting.remove(&id);
                }
                Err(QmpError::Silent(command))
            }
        }
    }

    /// Tells QEMU to end and waits until the connection does.
    pub(super) async fn quit(&self) {
        let answer = self.execute("quit").await;
        tracing::debug!(?answer, "told QEMU to quit");
        let (sender, closed) = oneshot::channel();
        match self.shared.waiting().as_mut() {
            // An id that QEMU will never answer: it resolves with the connection.
            Some(waiting) => drop(waiting.insert(0, sender)),
            None => return,
        }
        let _ = closed.await;
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, id: u64, answer: Answer) {
        if let Some(waiting) = self
            .waiting()
            .as_mut()
            .and_then(|waiting| waiting.remove(&id))
        {
            // The asker may have given up.
            let _ = waiting.send(answer);
        }
    }
}

async fn dispatch(
    mut reader: BufReader<OwnedReadHalf>,
    shared: Arc<Shared>,
    events: mpsc::Sender<QmpEvent>,
) {
    loop {
        match read_message(&mut reader).await {
            Ok(Some(Message::Event { event, data })) => {
                let _ = events.send(QmpEvent { name: event, data }).await;
            }
            Ok(Some(Message::Return { value, id })) => shared.answer(id, Ok(value)),
            Ok(Some(Message::Error { error, id })) => shared.answer(id, Err(error.desc)),
            Ok(Some(Message::Greeting { .. })) => {}
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the QMP connection ends");
                break;
            }
        }
    }
    shared.waiting().take();
}

async fn read_message(
    reader: &mut (impl AsyncBufRead + Unpin),
) -> Result<Option<Message>, QmpError> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if reader
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await?
            == 0
        {
            return Ok(None);
        }
        if !line.trim_ascii().is_empty() {
            return Ok(Some(serde_json::from_slice(&line)?));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GREETING: &str = "{\"QMP\": {\"version\": {}, \"capabilities\": [\"oob\"]}}\r\n\r\n";

    /// A peer that plays its lines, answering the n-th command with the n-th line.
    async fn peer(mut stream: UnixStream, lines: &'static [&'static str]) {
        stream.write_all(GREETING.as_bytes()).await.unwrap();
        let (reader, mut writer) = stream.into_split();
        let mut commands = BufReader::new(reader).lines();
        for line in lines {
            commands.next_line().await.unwrap().unwrap();
            writer.write_all(line.as_bytes()).await.unwrap();
        }
    }

    fn connect(lines: &'static [&'static str]) -> UnixStream {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(peer(theirs, lines));
        ours
    }

    #[tokio::test]
    async fn answers_and_events_find_their_readers() {
        let stream = connect(&[
            "{\"return\": {}, \"id\": 1}\r\n",
            "{\"timestamp\": {}, \"event\": \"STOP\"}\r\n{\"return\": {}, \"id\": 2}\r\n",
            "{\"id\": 3, \"error\": {\"class\": \"GenericError\", \"desc\": \"not now\"}}\r\n",
        ]);
        let (qmp, mut events) = Qmp::greet(stream).await.unwrap();
        qmp.execute("stop").await.unwrap();
        assert_eq!(
            events.recv().await.unwrap(),
            QmpEvent {
                name: "STOP".to_owned(),
                data: Value::Null
            }
        );
        assert_eq!(
            qmp.execute("cont").await.unwrap_err().to_string(),
            "QEMU refused `cont`: not now"
        );
        assert_eq!(events.recv().await, None);
        assert!(matches!(qmp.execute("cont").await, Err(QmpError::Closed)));
        qmp.quit().await;
    }

    #[tokio::test]
    async fn a_peer_that_dies_in_the_middle_is_no_answer() {
        let stream = connect(&["{\"return\": {}, \"id\": 1}\r\n", "{\"return\": "]);
        let (qmp, mut events) = Qmp::greet(stream).await.unwrap();
        assert!(matches!(qmp.execute("stop").await, Err(QmpError::Closed)));
        assert_eq!(events.recv().await, None);
    }

    #[tokio::test]
    async fn a_peer_that_says_nothing_is_no_qemu() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        assert!(matches!(Qmp::greet(ours).await, Err(QmpError::Closed)));
    }
}
