//! For tests: a server that answers what a script says, one connection per request.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use kube::{Client, Config};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::wire::Wire;

/// What a script makes of a request's first line.
pub(crate) enum Answer {
    /// A whole JSON answer.
    Json(u16, &'static str),
    /// A body that is sent and then cut off in the middle.
    Torn(&'static str),
    /// A body that is sent and then left open.
    Hanging(&'static str),
}

/// Requests that came, in order.
pub(crate) type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a server; `script` is asked with the number of the request and its first line.
pub(crate) async fn server(
    script: impl Fn(usize, &str) -> Answer + Send + Sync + 'static,
) -> (Wire, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Requests::default();
    let (seen, script) = (requests.clone(), Arc::new(script));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, script.clone(), seen.clone()));
        }
    });
    (wire(address), requests)
}

/// A way to a plain server.
pub(crate) fn wire(address: SocketAddr) -> Wire {
    let config = Config::new(format!("http://{address}").parse().unwrap());
    Wire::new(Client::try_from(config).unwrap(), Duration::from_secs(5))
}

async fn serve(mut stream: TcpStream, script: Arc<impl Fn(usize, &str) -> Answer>, seen: Requests) {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut piece = [0; 1024];
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return,
            Ok(length) => head.extend_from_slice(&piece[..length]),
        }
    }
    let line = String::from_utf8_lossy(&head)
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    let number = {
        let mut seen = seen.lock().unwrap();
        seen.push(line.clone());
        seen.len()
    };
    let answer = script(number, &line);
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let text = match &answer {
        Answer::Json(code, body) => {
            let length = body.len();
            format!(
                "HTTP/1.1 {code} x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            )
        }
        Answer::Torn(body) | Answer::Hanging(body) => {
            let length = body.len();
            format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n")
        }
    };
    let _ = stream.write_all(text.as_bytes()).await;
    if matches!(answer, Answer::Hanging(_)) {
        // Until the client goes away.
        let _ = stream.read(&mut [0; 1]).await;
    }
}
