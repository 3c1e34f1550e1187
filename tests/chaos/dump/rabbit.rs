//! Everything that is in a queue: read without acknowledging, and put back.
//!
//! Without the management plugin nothing lists the queues, so their names are tried; the waits of the retry queues are
//! configuration, and all that a test may sensibly choose are tried. A message in a queue that is missed here can only make
//! the checker stricter.

use super::{Lines, order_lines};
use crate::time::time_passes;
use amqprs::BasicProperties;
use amqprs::channel::{BasicGetArguments, BasicNackArguments, Channel, GetMessage, QueueDeclareArguments};
use amqprs::connection::{Connection, OpenConnectionArguments};
use amqprs::error::Error;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const RETRY_FIRST_MS: [u64; 8] = [50, 100, 200, 300, 500, 1000, 2000, 5000];
const RETRY_LAST_MS: [u64; 9] = [1000, 2000, 3000, 5000, 10_000, 20_000, 30_000, 60_000, 300_000];
const DOUBLINGS: u32 = 9;
const ORDER_QUEUES_MAX: u16 = 64;
const READS_MAX: u32 = 5;
const RETRY_READS_MAX: u32 = 2;
const READ_AGAIN_MS: u64 = 3000;

/// Dumps all queues.
pub(super) async fn dump(url: &str, prefix: &str, dir: &Path) {
    let mut lines = Lines::create(dir, "rabbit");
    for n in 0..ORDER_QUEUES_MAX {
        if !browse(url, &format!("{prefix}.orders.{n}"), "orders", &mut lines).await {
            assert!(n > 0, "there is no order queue under the prefix {prefix}");
            break;
        }
    }
    let doubled = RETRY_FIRST_MS.into_iter().flat_map(|first| (0..DOUBLINGS).map(move |times| first << times));
    for ms in doubled.chain(RETRY_LAST_MS).collect::<BTreeSet<u64>>() {
        browse(url, &format!("{prefix}.retry.{ms}"), "retry", &mut lines).await;
    }
    assert!(
        browse(url, &format!("{prefix}.dlq"), "dlq", &mut lines).await,
        "there is no DLQ under the prefix {prefix}"
    );
    lines.close();
}

/// Reads a queue; `false` when there is no such queue. A busy broker was seen to close the channel instead of answering, and what
/// was read on it goes back then: so a failed reading is repeated, and only the last one is a failure.
async fn browse(url: &str, queue: &str, kind: &str, lines: &mut Lines) -> bool {
    let mut reads = 0;
    let messages = loop {
        reads += 1;
        match read(url, queue).await {
            Ok(Some(messages)) => break messages,
            Ok(None) => return false,
            Err(error) => {
                eprintln!("chaos: reading {reads} of {queue}: {error}");
                // A retry queue that was deleted shortly before the broker died can be left without a leader for good (seen with
                // RabbitMQ 3.10): it answers no call. Its messages are missed then, which makes the checker stricter.
                if kind == "retry" && reads == RETRY_READS_MAX {
                    return true;
                }
                assert!(reads < READS_MAX, "{queue} cannot be read: {error}");
                time_passes(READ_AGAIN_MS).await;
            }
        }
    };
    for (got, properties, body) in messages {
        if properties.content_type().is_some_and(|kind| kind == order_lines::CONTENT_TYPE) {
            for (rid, body) in order_lines::read(&String::from_utf8_lossy(&body)) {
                lines.put(&json!({
                    "queue": queue, "kind": kind, "message_id": rid, "redelivered": got.redelivered(), "body": body,
                }));
            }
            continue;
        }
        for (message_id, body) in orders(&properties, &body) {
            let decoded = serde_json::from_slice::<Value>(body).ok();
            lines.put(&json!({
                "queue": queue, "kind": kind, "message_id": message_id, "redelivered": got.redelivered(),
                "body": decoded, "raw": String::from_utf8_lossy(body),
            }));
        }
    }
    true
}

/// The messages of a queue, which go back into it; `None` when there is no such queue.
async fn read(url: &str, queue: &str) -> Result<Option<Vec<GetMessage>>, Error> {
    let (connection, channel) = open(url).await?;
    let mut declare = QueueDeclareArguments::new(queue);
    declare.passive(true);
    // The broker closes the channel over a queue that is not there, so each queue gets a connection of its own.
    if channel.queue_declare(declare).await.is_err() {
        drop(channel);
        connection.close().await.ok();
        return Ok(None);
    }
    let mut messages = Vec::new();
    while let Some(message) = channel.basic_get(BasicGetArguments::new(queue)).await? {
        messages.push(message);
    }
    if let Some((last, ..)) = messages.last() {
        // By word: what a closing channel puts back comes some time after the close is confirmed.
        channel.basic_nack(BasicNackArguments::new(last.delivery_tag(), true, true)).await?;
    }
    channel.close().await?;
    connection.close().await?;
    Ok(Some(messages))
}

/// Whether a queue can be read, or is not there; else why not.
pub async fn readable(url: &str, queue: &str) -> Result<(), String> {
    read(url, queue).await.map(drop).map_err(|error| error.to_string())
}

/// The orders of a message, (message id, body) each: several when its content type says that they share it, a line each.
fn orders<'a>(properties: &'a BasicProperties, body: &'a [u8]) -> Vec<(Option<&'a str>, &'a [u8])> {
    if properties.content_type().is_none_or(|kind| kind != "application/vnd.seckill.orders") {
        return vec![(properties.message_id().map(String::as_str), body)];
    }
    let line = |line: &'a [u8]| match line.iter().position(|byte| *byte == b' ') {
        Some(at) => (std::str::from_utf8(&line[..at]).ok(), &line[at + 1..]),
        None => (None, line),
    };
    body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(line).collect()
}

pub(super) async fn open(url: &str) -> Result<(Connection, Channel), Error> {
    let rest = url.strip_prefix("amqp://").expect("an amqp url");
    let (login, rest) = rest.split_once('@').expect("user and password");
    let (user, password) = login.split_once(':').expect("a password");
    let (address, vhost) = rest.split_once('/').expect("a virtual host");
    let (host, port) = address.rsplit_once(':').expect("a port");
    let mut arguments = OpenConnectionArguments::new(host, port.parse().expect("a port"), user, password);
    arguments.virtual_host(&vhost.replace("%2f", "/").replace("%2F", "/"));
    let connection = Connection::open(&arguments).await?;
    let channel = connection.open_channel(None).await?;
    Ok((connection, channel))
}

#[test]
fn orders_that_share_a_message_are_listed_one_by_one() {
    let message = |kind: &str, body: &'static [u8]| {
        let mut properties = BasicProperties::default();
        properties.with_content_type(kind).with_message_id("m");
        let found = orders(&properties, body);
        found.into_iter().map(|(id, body)| (id.map(str::to_owned), body.to_vec())).collect::<Vec<_>>()
    };
    let order = |id: &str, body: &[u8]| (Some(id.to_owned()), body.to_vec());
    assert_eq!(message("application/json", b"{} \n{}"), [order("m", b"{} \n{}")]);
    assert_eq!(
        message("application/vnd.seckill.orders", b"a {\"n\": 1}\nb {}\n"),
        [order("a", b"{\"n\": 1}"), order("b", b"{}")]
    );
}
