//! Everything that lies in a queue: read without acknowledging, and put back.
//!
//! Without the management plugin nobody lists the queues, so their names are tried; the waits of the retry queues are
//! configuration, and all that a test may sensibly choose are tried. A message in a queue that is missed here can only make
//! the checker stricter.

use super::Lines;
use amqprs::channel::{BasicGetArguments, BasicNackArguments, Channel, QueueDeclareArguments};
use amqprs::connection::{Connection, OpenConnectionArguments};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const RETRY_FIRST_MS: [u64; 8] = [50, 100, 200, 300, 500, 1000, 2000, 5000];
const RETRY_LAST_MS: [u64; 9] = [1000, 2000, 3000, 5000, 10_000, 20_000, 30_000, 60_000, 300_000];
const DOUBLINGS: u32 = 9;
const ORDER_QUEUES_MAX: u16 = 64;

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

/// Reads a queue; `false` when there is no such queue.
async fn browse(url: &str, queue: &str, kind: &str, lines: &mut Lines) -> bool {
    let (connection, channel) = open(url).await;
    let mut declare = QueueDeclareArguments::new(queue);
    declare.passive(true);
    // The broker closes the channel over a queue that is not there, so each queue gets a connection of its own.
    if channel.queue_declare(declare).await.is_err() {
        drop(channel);
        connection.close().await.ok();
        return false;
    }
    let mut last = None;
    while let Some((got, properties, body)) = channel.basic_get(BasicGetArguments::new(queue)).await.expect(queue) {
        last = Some(got.delivery_tag());
        let decoded = serde_json::from_slice::<Value>(&body).ok();
        lines.put(&json!({
            "queue": queue, "kind": kind, "message_id": properties.message_id(), "redelivered": got.redelivered(),
            "body": decoded, "raw": String::from_utf8_lossy(&body),
        }));
    }
    if let Some(tag) = last {
        // By word: what a closing channel puts back comes some time after the close is confirmed.
        channel.basic_nack(BasicNackArguments::new(tag, true, true)).await.expect("put back");
    }
    channel.close().await.expect("closed");
    connection.close().await.expect("closed");
    true
}

async fn open(url: &str) -> (Connection, Channel) {
    let rest = url.strip_prefix("amqp://").expect("an amqp url");
    let (login, rest) = rest.split_once('@').expect("user and password");
    let (user, password) = login.split_once(':').expect("a password");
    let (address, vhost) = rest.split_once('/').expect("a virtual host");
    let (host, port) = address.rsplit_once(':').expect("a port");
    let mut arguments = OpenConnectionArguments::new(host, port.parse().expect("a port"), user, password);
    arguments.virtual_host(&vhost.replace("%2f", "/").replace("%2F", "/"));
    let connection = Connection::open(&arguments).await.expect("rabbitmq");
    let channel = connection.open_channel(None).await.expect("a channel");
    (connection, channel)
}
