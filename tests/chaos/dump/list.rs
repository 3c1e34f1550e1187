//! The list outbox (`redis.outbox = "list"`) in the files the stream's has: entries that wait or are in a relay's processing
//! list, and parked ones. Reads the packed strings by itself.

use super::resp::RawRedis;
use serde_json::{Value, json};

/// Entries without a holder.
pub(super) async fn waiting(redis: &mut RawRedis, key: &str, shard: u16) -> Vec<Value> {
    let entries = redis.call(&["LRANGE", key, "0", "-1"]).await.items();
    entries.iter().map(|entry| unpacked(&entry.text(), shard)).collect()
}

/// Entries in one relay's hand.
pub(super) async fn held(redis: &mut RawRedis, key: &str, shard: u16, relay: &str) -> Vec<Value> {
    let mut lines = waiting(redis, key, shard).await;
    lines.iter_mut().for_each(|line| line["pending"] = json!({"consumer": relay}));
    lines
}

/// `<id> <attempts> <length of the reason> <reason><entry>`.
pub(super) async fn parked(redis: &mut RawRedis, key: &str, shard: u16) -> Vec<Value> {
    let members = redis.call(&["ZRANGE", key, "0", "-1"]).await.items();
    members.iter().map(|member| of_member(&member.text(), shard)).collect()
}

fn of_member(text: &str, shard: u16) -> Value {
    let parts: Vec<&str> = text.splitn(4, ' ').collect();
    let [id, attempts, length, rest] = parts[..] else { panic!("no parked entry: {text}") };
    let (reason, entry) = rest.split_at(length.parse().expect("a length"));
    let mut line = unpacked(entry, shard);
    line["entry"] = json!(id);
    line["reason"] = json!(reason);
    line["attempts"] = json!(attempts);
    line
}

/// `<at_ms>-<request id> <sale> <payload>`; what cannot be read is dumped without a request.
fn unpacked(text: &str, shard: u16) -> Value {
    let parts: Vec<&str> = text.splitn(3, ' ').collect();
    let rid = parts[0].split_once('-').map(|(_, rid)| rid);
    let body = parts.get(2).and_then(|payload| serde_json::from_str::<Value>(payload).ok());
    json!({"shard": shard, "entry": parts[0], "rid": rid, "sale": parts.get(1), "body": body})
}
