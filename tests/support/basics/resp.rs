//! A second, tiny Redis client: what the tests read, break and compare, they do without the product's own code.

use std::collections::BTreeMap;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A reply of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Null.
    Nil,
    /// An integer.
    Int(i64),
    /// A text, or any bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// The server's refusal.
    Error(String),
}

impl Reply {
    /// Bytes as text.
    pub fn text(&self) -> String {
        match self {
            Self::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other @ (Self::Nil | Self::Int(_) | Self::List(_) | Self::Error(_)) => panic!("no text: {other:?}"),
        }
    }

    /// An integer.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(value) => *value,
            other @ (Self::Nil | Self::Bytes(_) | Self::List(_) | Self::Error(_)) => panic!("no integer: {other:?}"),
        }
    }

    /// A list's items.
    pub fn items(self) -> Vec<Self> {
        match self {
            Self::List(items) => items,
            other @ (Self::Nil | Self::Bytes(_) | Self::Int(_) | Self::Error(_)) => panic!("no list: {other:?}"),
        }
    }
}

/// One connection.
pub struct RawRedis {
    stream: BufReader<TcpStream>,
    prefix: String,
    /// Other tests use this server, too.
    pub is_shared: bool,
}

/// Commands that change a server for all who use it.
const OF_WHOLE_SERVER: &[&str] =
    &["SCRIPT FLUSH", "FLUSHALL", "FLUSHDB", "CONFIG SET", "ACL SETUSER", "REPLICAOF", "FAILOVER", "SHUTDOWN", "DEBUG"];

/// Stops a test that would harm the others: such a command needs a server of its own (`own_redis::world`).
pub fn spares_the_others(is_shared: bool, command: &[&[u8]]) {
    let words: Vec<_> = command.iter().take(2).map(|word| String::from_utf8_lossy(word)).collect();
    let command = words.join(" ").to_uppercase();
    let harms = OF_WHOLE_SERVER.iter().any(|harmful| command.starts_with(harmful));
    assert!(!(is_shared && harms), "{command} changes a server that other tests use: take one of the test's own");
}

impl RawRedis {
    /// To the Redis at `redis://host:port`, for keys under `prefix`.
    pub async fn at(url: &str, prefix: &str) -> Self {
        let address = url.strip_prefix("redis://").expect("a redis url").trim_end_matches('/').to_owned();
        let stream = BufReader::new(TcpStream::connect(address).await.expect("redis"));
        Self { stream, prefix: prefix.to_owned(), is_shared: false }
    }

    /// Sends one command; errors come back as [`Reply::Error`].
    pub async fn try_call(&mut self, parts: &[&[u8]]) -> Reply {
        spares_the_others(self.is_shared, parts);
        let mut bytes = format!("*{}\r\n", parts.len()).into_bytes();
        for part in parts {
            bytes.extend(format!("${}\r\n", part.len()).into_bytes());
            bytes.extend(*part);
            bytes.extend(b"\r\n");
        }
        self.stream.get_mut().write_all(&bytes).await.expect("sent");
        Box::pin(self.read()).await
    }

    /// Sends one command of texts that must succeed.
    pub async fn call(&mut self, parts: &[&str]) -> Reply {
        let parts: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
        match self.try_call(&parts).await {
            Reply::Error(error) => panic!("redis: {error}"),
            reply @ (Reply::Nil | Reply::Int(_) | Reply::Bytes(_) | Reply::List(_)) => reply,
        }
    }

    async fn read(&mut self) -> Reply {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.expect("a reply");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" => Reply::Bytes(rest.as_bytes().to_vec()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Int(rest.parse().expect("an integer")),
            "$" => {
                let Ok(length) = rest.parse::<usize>() else { return Reply::Nil };
                let mut bytes = vec![0; length + 2];
                self.stream.read_exact(&mut bytes).await.expect("bytes");
                bytes.truncate(length);
                Reply::Bytes(bytes)
            }
            "*" => {
                let Ok(length) = rest.parse::<usize>() else { return Reply::Nil };
                let mut items = Vec::with_capacity(length);
                for _ in 0..length {
                    items.push(Box::pin(self.read()).await);
                }
                Reply::List(items)
            }
            other => panic!("unknown reply {other:?}"),
        }
    }

    /// What all clients of the server send it for so long, a line each.
    pub async fn monitored(mut self, window: std::time::Duration) -> Vec<String> {
        self.call(&["MONITOR"]).await;
        let mut lines = Vec::new();
        let until = tokio::time::Instant::now() + window;
        while let Ok(line) = tokio::time::timeout_at(until, self.read()).await {
            lines.push(line.text());
        }
        lines
    }

    /// Every key under the prefix, sorted.
    pub async fn keys(&mut self) -> Vec<String> {
        let pattern = format!("{}:*", self.prefix);
        let mut keys: Vec<String> = self.call(&["KEYS", &pattern]).await.items().iter().map(Reply::text).collect();
        keys.sort();
        keys
    }

    /// A hash.
    pub async fn hash(&mut self, key: &str) -> BTreeMap<String, String> {
        let items = self.call(&["HGETALL", key]).await.items();
        items.chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text())).collect()
    }
}
