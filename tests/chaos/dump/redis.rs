//! The keys of every sale and shard, the outboxes with what is pending, and the relay DLQs.

use super::resp::{RawRedis, Reply};
use super::{DumpUrls, Lines, list, order_lines};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Pending entries read per outbox; more would be no quiet system.
const PENDING_MAX: &str = "100000";
const FILES: [&str; 9] = ["keys", "meta", "stock", "buyers", "ledger", "grants", "transfers", "outbox", "relay_dlq"];

/// Dumps everything under the prefix.
pub(super) async fn dump(urls: &DumpUrls, dir: &Path) {
    let mut files: BTreeMap<&str, Lines> =
        FILES.into_iter().map(|name| (name, Lines::create(dir, &format!("redis_{name}")))).collect();
    for url in urls.redis.split(',') {
        dump_server(&mut RawRedis::at(url, &urls.prefix).await, urls, &mut files).await;
    }
    files.into_values().for_each(Lines::close);
}

async fn dump_server(redis: &mut RawRedis, urls: &DumpUrls, files: &mut BTreeMap<&str, Lines>) {
    let prefix = &urls.prefix;
    for key in redis.keys().await {
        // `<prefix>:{k}:<name>[:<sale>]`
        let Some((shard, rest)) = key.strip_prefix(&format!("{prefix}:{{")).and_then(|rest| rest.split_once("}:"))
        else {
            continue;
        };
        let Ok(shard) = shard.parse::<u16>() else {
            assert!(urls.damaged, "{key}: expected a shard");
            continue;
        };
        let (name, sale) = rest.split_once(':').unwrap_or((rest, ""));
        if !sale.is_empty() {
            // An empty hash and one that is gone are the same in their entries.
            let file = files.get_mut("keys").expect("a file for the keys");
            file.put(&json!({"sale": sale, "shard": shard, "name": name}));
        }
        let lines = match (name, sale) {
            ("outbox", "") => outbox(redis, &key, shard).await,
            ("relay-dlq", "") => stream(redis, &key, shard).await,
            ("outbox-list", "") => list::waiting(redis, &key, shard).await,
            ("processing", relay) => list::held(redis, &key, shard, relay).await,
            ("relay-dlq-set", "") => list::parked(redis, &key, shard).await,
            (_, "") => continue,
            ("stock", sale) => {
                let value = redis.call(&["GET", &key]).await.text();
                vec![json!({"sale": sale, "shard": shard, "value": value})]
            }
            ("meta", sale) => vec![json!({"sale": sale, "shard": shard, "fields": redis.hash(&key).await})],
            ("buyers" | "ledger" | "grants" | "transfers", sale) => {
                let hash = redis.hash(&key).await;
                // The empty field marks the hash as created.
                let entries = hash.into_iter().filter(|(field, _)| !field.is_empty());
                entries.map(|(field, text)| entry(name, (sale, shard), &field, &text)).collect()
            }
            (_, _) if urls.damaged => continue,
            (other, _) => panic!("a key of an unknown kind: {other}"),
        };
        let file = match name {
            "outbox-list" | "processing" => "outbox",
            "relay-dlq" | "relay-dlq-set" => "relay_dlq",
            other => other,
        };
        let file = files.get_mut(file).expect("a file for each kind");
        lines.iter().for_each(|line| file.put(line));
    }
}

fn entry(name: &str, (sale, shard): (&str, u16), field: &str, text: &str) -> Value {
    match name {
        "ledger" => record(sale, shard, field, text),
        "buyers" => {
            let (units, first) = text.split_once(' ').unwrap_or((text, ""));
            json!({"sale": sale, "shard": shard, "user": field, "units": units, "first_rid": first})
        }
        _ => json!({"sale": sale, "shard": shard, "id": field, "units": text}),
    }
}

/// `<state> <number> <quantity> <epoch> <at_ms> <reason> <user>`; what cannot be read is dumped with its text.
fn record(sale: &str, shard: u16, rid: &str, text: &str) -> Value {
    let fields: Vec<&str> = text.splitn(7, ' ').collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
    match (fields.as_slice(), number(1), number(2), number(3), number(4)) {
        ([state, _, _, _, _, reason, user], Some(no), Some(quantity), Some(epoch), Some(at_ms)) => json!({
            "sale": sale, "shard": shard, "rid": rid, "state": state, "number": no, "quantity": quantity,
            "epoch": epoch, "at_ms": at_ms, "reason": reason, "user": user,
        }),
        _ => json!({"sale": sale, "shard": shard, "rid": rid, "unreadable": text}),
    }
}

/// The entries of a stream, with their bodies decoded.
async fn stream(redis: &mut RawRedis, key: &str, shard: u16) -> Vec<Value> {
    let entries = redis.call(&["XRANGE", key, "-", "+"]).await.items();
    entries.into_iter().flat_map(|entry| of_stream(entry, shard)).collect()
}

/// The orders of an entry, a line each.
fn of_stream(entry: Reply, shard: u16) -> Vec<Value> {
    let [id, fields] = <[Reply; 2]>::try_from(entry.items()).expect("an entry");
    let fields: BTreeMap<String, String> =
        fields.items().chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text())).collect();
    let line = |rid: Option<&str>, body: Option<Value>| {
        json!({"shard": shard, "entry": id.text(), "rid": rid, "sale": fields.get("s"), "body": body,
            "reason": fields.get("reason"), "attempts": fields.get("attempts")})
    };
    match fields.get("o") {
        Some(orders) => order_lines::read(orders).into_iter().map(|(rid, body)| line(Some(&rid), body)).collect(),
        None => {
            let body = fields.get("p").and_then(|text| serde_json::from_str::<Value>(text).ok());
            vec![line(fields.get("r").map(String::as_str), body)]
        }
    }
}

async fn outbox(redis: &mut RawRedis, key: &str, shard: u16) -> Vec<Value> {
    let mut pending = BTreeMap::new();
    for found in redis.call(&["XPENDING", key, "relay", "-", "+", PENDING_MAX]).await.items() {
        let [id, consumer, idle, delivered] = <[Reply; 4]>::try_from(found.items()).expect("a pending entry");
        pending.insert(
            id.text(),
            json!({"consumer": consumer.text(), "idle_ms": idle.int(), "delivered": delivered.int()}),
        );
    }
    let mut lines = stream(redis, key, shard).await;
    for line in &mut lines {
        let id = line["entry"].as_str().expect("an id").to_owned();
        line["pending"] = pending.get(&id).cloned().unwrap_or(Value::Null);
    }
    // Pending, but no longer in the stream.
    let there: BTreeSet<String> = lines.iter().filter_map(|line| Some(line["entry"].as_str()?.to_owned())).collect();
    let deleted = pending.into_iter().filter(|(id, _)| !there.contains(id));
    lines.extend(deleted.map(|(id, info)| json!({"shard": shard, "entry": id, "deleted": true, "pending": info})));
    lines
}
