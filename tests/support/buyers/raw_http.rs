//! HTTP by hand, for what a well-behaved client never sends: half bodies, chunks without a length, duplicated headers.

use crate::support::world::World;
use serde_json::Value;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longest wait for an answer.
const DEADLINE: Duration = Duration::from_secs(10);

/// What came back.
#[derive(Debug)]
pub struct RawAnswer {
    /// Status code; 0 when the connection was closed without an answer.
    pub status: u16,
    /// Head as it came.
    pub head: String,
    /// Body as it came.
    pub body: String,
    /// Body as JSON.
    pub json: Value,
}

impl RawAnswer {
    /// A text field of the body.
    pub fn text(&self, field: &str) -> String {
        self.json[field].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends `bytes` as they are and reads one answer.
pub async fn send(world: &World, bytes: &[u8]) -> RawAnswer {
    send_on(&mut connect(world).await, bytes).await
}

/// A connection to the public port.
pub async fn connect(world: &World) -> TcpStream {
    TcpStream::connect(world.api.strip_prefix("http://").expect("an address")).await.expect("connected")
}

/// Sends `bytes` on a connection that may have served before, and reads one answer.
pub async fn send_on(stream: &mut TcpStream, bytes: &[u8]) -> RawAnswer {
    stream.write_all(bytes).await.expect("sent");
    let mut answer = Vec::new();
    let read = async {
        let mut part = [0; 4096];
        loop {
            let count = stream.read(&mut part).await.unwrap_or(0);
            answer.extend_from_slice(&part[..count]);
            if count == 0 || is_whole(&answer) {
                return;
            }
        }
    };
    tokio::time::timeout(DEADLINE, read).await.expect("an answer in time");
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let json = serde_json::from_str(body).unwrap_or(Value::Null);
    RawAnswer { status, head: head.to_ascii_lowercase(), body: body.to_owned(), json }
}

fn is_whole(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
    length.is_some_and(|length| body.len() >= length)
}

/// The head of a purchase with a buyer's token, without the empty line that ends it; `more` are further header lines.
pub fn purchase_head(world: &World, sale: &str, user: &str, more: &str) -> String {
    format!(
        "POST /v1/sales/{sale}/orders HTTP/1.1\r\nHost: seckill\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{more}",
        world.access(user)
    )
}
