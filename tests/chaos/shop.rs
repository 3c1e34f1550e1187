//! The shop that gets the webhooks: an HTTP server in the harness, which no fault is aimed at. It fails at one call of some by itself, so that
//! a delivery has to be tried again. (503 would be another word: a busy receiver is left alone for a second, with all that waits.)
//!
//! Output: `received.jsonl`, a line for each event of a call that it took. The checker asks for every event (C15).

use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// One call of this number fails.
const FAILS: usize = 12;
const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n";
const FAILED: &[u8] = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

/// Settings of a deployment that calls it: pauses that are over within the run.
pub const SOON: [&str; 2] = [
    "webhook_delivery.retry_ms=100,200,300,300,300,500,500,500,1000,1000,1000,1000,1000,2000,2000,2000,4000,4000,4000,4000",
    "webhook_delivery.deadline_ms=3000",
];

/// What it got.
#[derive(Default)]
struct Received {
    calls: usize,
    /// Whether what it takes is kept: a run of hours has no room for it.
    keeps: bool,
    taken: Vec<Value>,
}

/// Listens until it is dropped.
pub struct Shop {
    port: u16,
    received: Arc<Mutex<Received>>,
    tasks: JoinSet<()>,
}

impl Shop {
    /// Opens. `keeps`: everything that it takes, to be written down.
    pub async fn open(keeps: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (received, mut tasks) = (Arc::new(Mutex::new(Received { keeps, ..Received::default() })), JoinSet::new());
        tasks.spawn(serve(listener, Arc::clone(&received)));
        Self { port, received, tasks }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hooks", self.port)
    }

    /// Writes what it took so far.
    pub fn write(&self, dir: &Path) {
        let lines: String =
            self.received.lock().expect("not poisoned").taken.iter().map(|event| format!("{event}\n")).collect();
        std::fs::write(dir.join("received.jsonl"), lines).expect("written");
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.tasks.abort_all();
    }
}

async fn serve(listener: TcpListener, received: Arc<Mutex<Received>>) {
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let received = received.clone();
        connections.spawn(async move {
            let mut connection = BufReader::new(connection);
            while let Some(body) = call(&mut connection).await {
                let answer = received.lock().expect("not poisoned").take(&body);
                if connection.write_all(answer).await.is_err() {
                    return;
                }
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The body of the next call; nothing when the connection ends first.
async fn call(connection: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if connection.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.ok()?;
    Some(body)
}

impl Received {
    /// Keeps an event, and answers.
    fn take(&mut self, body: &[u8]) -> &'static [u8] {
        self.calls += 1;
        if self.calls.is_multiple_of(FAILS) {
            return FAILED;
        }
        if !self.keeps {
            return TAKEN;
        }
        let call: Value = serde_json::from_slice(body).unwrap_or_default();
        let field = |name: &str| call["data"][name].clone();
        self.taken.push(json!({
            "rid": field("rid"), "status": field("status"), "version": field("version"), "payment_id": field("payment_id"),
        }));
        TAKEN
    }
}
