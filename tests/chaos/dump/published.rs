//! What downstream systems got: a queue on the events exchange, from before the first purchase on. It is a quorum queue, so
//! that it outlives the deaths of the broker, and no fault is aimed at it.
//!
//! Output: `published.jsonl`, a line for each event of a request or an order, and `announced.jsonl` for those of sales. The lines of a dump are written before their messages are acknowledged, and each dump
//! writes behind the one before: an event may be there twice.

use super::rabbit::open;
use crate::time::time_passes;
use amqprs::channel::{
    BasicAckArguments, BasicGetArguments, ExchangeDeclareArguments, QueueBindArguments, QueueDeclareArguments,
};
use amqprs::error::Error;
use amqprs::{FieldTable, FieldValue, ShortStr};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

const READS_MAX: u32 = 5;
const READ_AGAIN_MS: u64 = 3000;

fn queue(prefix: &str) -> String {
    format!("{prefix}.published")
}

/// Subscribes: events from now on are kept.
pub async fn listen(url: &str, prefix: &str) {
    let (connection, channel) = open(url).await.expect("the broker");
    let exchange = format!("{prefix}.events");
    let mut declare = ExchangeDeclareArguments::new(&exchange, "topic");
    declare.durable(true);
    channel.exchange_declare(declare).await.expect("the events exchange");
    let mut arguments = FieldTable::new();
    arguments.insert(ShortStr::try_from("x-queue-type").expect("a short name"), FieldValue::from("quorum"));
    let declare = QueueDeclareArguments::durable_client_named(&queue(prefix)).arguments(arguments).finish();
    channel.queue_declare(declare).await.expect("a queue");
    channel.queue_bind(QueueBindArguments::new(&queue(prefix), &exchange, "#")).await.expect("bound");
    channel.close().await.expect("closed");
    connection.close().await.expect("closed");
}

/// Writes what came since the last time. Without a queue the file stays away, and the checker says so.
pub(super) async fn dump(url: &str, prefix: &str, dir: &Path) {
    let mut reads = 1;
    while let Err(error) = take(url, &queue(prefix), dir).await {
        eprintln!("chaos: reading {reads} of what was published: {error}");
        reads += 1;
        if reads > READS_MAX {
            return;
        }
        time_passes(READ_AGAIN_MS).await;
    }
}

async fn take(url: &str, queue: &str, dir: &Path) -> Result<(), Error> {
    let (connection, channel) = open(url).await?;
    let (mut published, mut announced) = (String::new(), String::new());
    let mut last = None;
    while let Some((got, _, body)) = channel.basic_get(BasicGetArguments::new(queue)).await? {
        last = Some(got.delivery_tag());
        let key = got.routing_key();
        let (lines, fields) = match key.starts_with("sale.") {
            true => (&mut announced, &["sale_id", "version"][..]),
            false => (&mut published, &["rid", "status", "version", "payment_id"][..]),
        };
        lines.extend(events(key, &body, fields).iter().map(|event| format!("{event}\n")));
    }
    for (name, lines) in [("published.jsonl", published), ("announced.jsonl", announced)] {
        let file = OpenOptions::new().create(true).append(true).open(dir.join(name));
        file.expect("a file").write_all(lines.as_bytes()).expect("written");
    }
    if let Some(tag) = last {
        channel.basic_ack(BasicAckArguments::new(tag, true)).await?;
    }
    channel.close().await?;
    connection.close().await?;
    Ok(())
}

/// The events of a message; of one that cannot be read a line that the checker cannot read either.
fn events(key: &str, body: &[u8], fields: &[&str]) -> Vec<Value> {
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    let Some(events) = message["events"].as_array() else {
        return vec![json!({ "key": key, "unreadable": String::from_utf8_lossy(body) })];
    };
    let line = |event: &Value| {
        let mut line = json!({ "key": key });
        fields.iter().for_each(|name| line[*name] = event[*name].clone());
        line
    };
    events.iter().map(line).collect()
}

#[test]
fn events_that_share_a_message_are_listed_one_by_one() {
    let body = br#"{"v":1,"events":[{"rid":"1","status":"PAID","version":2},{"rid":"2","status":"FAILED"}]}"#;
    let fields = ["rid", "status", "version"];
    let listed = events("order.x", body, &fields);
    assert_eq!((&listed[0]["rid"], &listed[0]["version"]), (&json!("1"), &json!(2)));
    assert_eq!((&listed[1]["status"], &listed[1]["version"]), (&json!("FAILED"), &Value::Null));
    assert!(events("order.x", b"{", &fields).first().is_some_and(|line| line.get("rid").is_none()));
}
