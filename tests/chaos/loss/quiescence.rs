//! Waits until the system is quiescent: raw dumps do not change any more.

use super::testbed::Testbed;
use crate::dump::dump_stores;
use crate::time::pause;
use serde_json::Value;
use std::collections::{BTreeSet, hash_map::DefaultHasher};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

/// Without change for this long, and nothing open: rest. Some rounds of P5.
const CALM: Duration = Duration::from_millis(900);
/// Without change for this long, whatever is open: it is left for a person. Longer than the window and the rebuild's quiet time
/// together.
const STUCK: Duration = Duration::from_millis(4000);
/// What moves for longer than this never comes to rest, and is judged as it is.
const LONGEST: Duration = Duration::from_secs(45);

/// Waits for rest; `false` when it did not come.
pub async fn at_rest(testbed: &Testbed, dir: &Path) -> bool {
    let begun = Instant::now();
    let (mut last, mut since) = (None, Instant::now());
    while begun.elapsed() < LONGEST {
        dump_stores(&testbed.urls(), dir).await;
        let (digest, open) = read(dir);
        if last != Some(digest) {
            (last, since) = (Some(digest), Instant::now());
        }
        let quiet = since.elapsed();
        if quiet > STUCK || (!open && quiet > CALM && testbed.queued().await == Some(0)) {
            return true;
        }
        for _ in 0..10 {
            pause().await;
        }
    }
    false
}

/// What a sale is, in a number; and whether anything is still to be done.
fn read(dir: &Path) -> (u64, bool) {
    let mut digest = DefaultHasher::new();
    for file in ["sales", "orders", "request_outcome", "failed_request", "stock_grants", "redis_stock", "redis_keys"] {
        text(dir, file).hash(&mut digest);
    }
    let mut decided: BTreeSet<String> = values(dir, "request_outcome", "request_id");
    // An order whose outcome somebody took away: no repair of it is to come.
    decided.extend(values(dir, "orders", "request_id"));
    let undecided: BTreeSet<String> = values(dir, "redis_ledger", "rid").difference(&decided).cloned().collect();
    let waiting = values(dir, "redis_outbox", "entry");
    (&undecided, &waiting).hash(&mut digest);
    let mut broken = false;
    let mut shards: BTreeSet<(String, u64)> = BTreeSet::new();
    for line in text(dir, "redis_meta").lines() {
        let meta: Value = serde_json::from_str(line).expect("a line of the dump");
        let fields = &meta["fields"];
        for name in ["state", "epoch", "number"] {
            fields[name].as_str().hash(&mut digest);
        }
        broken |= fields["state"] == "frozen";
        shards.insert((meta["sale"].to_string(), meta["shard"].as_u64().expect("a shard")));
    }
    let sales = text(dir, "sales").lines().count();
    broken |= shards.len() < sales * usize::from(super::redis::SHARDS);
    let waits = text(dir, "stock_grants").contains("\"applied_at\": null") || !text(dir, "redis_transfers").is_empty();
    (digest.finish(), broken || waits || !undecided.is_empty() || !waiting.is_empty())
}

fn text(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(format!("{name}.jsonl"))).expect("a dump's file")
}

fn values(dir: &Path, name: &str, field: &str) -> BTreeSet<String> {
    let lines = text(dir, name);
    let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line of the dump"));
    lines.filter_map(|line| line[field].as_str().map(str::to_owned)).collect()
}
