//! What both sides say of two buckets.

use super::{BucketsStage, SHARDS};
use crate::play::facts::Facts;
use crate::support::basics::resp::Reply;
use crate::transfers::state::TwoBuckets;

/// What the servers say.
pub(super) async fn seen(stage: &mut BucketsStage) -> Facts {
    let mut facts = Facts::new();
    for shard in 0..SHARDS {
        of_bucket(stage, shard, &mut facts).await;
    }
    let sale = stage.sale().await;
    facts.insert("database: stock".to_owned(), sale.stock.to_string());
    facts.insert("database: epoch".to_owned(), sale.epoch.to_string());
    facts
}

/// What the model says.
pub(super) fn of_buckets(buckets: &TwoBuckets) -> Facts {
    let mut facts = Facts::new();
    for (shard, keys) in buckets.keys.iter().enumerate() {
        let mut note = |name: &str, value: String| {
            facts.insert(format!("bucket {shard}: {name}"), value);
        };
        note("script", (!buckets.fenced[shard]).to_string());
        note("state", if keys.frozen { "frozen" } else { "open" }.to_owned());
        note("epoch", keys.epoch.to_string());
        note("stock", keys.stock.to_string());
        note("accepted", keys.accepted.to_string());
        note("sent", keys.sent.to_string());
        note("received", keys.received.to_string());
        note("taken", keys.taken.to_string());
        note("given", keys.given.to_string());
        note("got", keys.got.map_or_else(|| "-".to_owned(), |(number, units)| format!("{number} {units}")));
        note("record", keys.record.map_or_else(|| "-".to_owned(), |(number, units)| format!("{number} {units}")));
    }
    facts.insert("database: stock".to_owned(), buckets.units_left.to_string());
    facts.insert("database: epoch".to_owned(), buckets.epoch.to_string());
    facts
}

async fn of_bucket(stage: &mut BucketsStage, shard: u16, facts: &mut Facts) {
    let (redis, other) = (&stage.world.servers.redis, 1 - shard);
    let script = redis.boot_fence.was_passed(shard).await.expect("redis");
    let node = &mut stage.nodes[usize::from(shard)];
    let meta = node.hash(&redis.keys.meta(shard, &stage.sale)).await;
    let stock = node.call(&["GET", &redis.keys.stock(shard, &stage.sale)]).await;
    let pending = redis.transfers.pending(&stage.sale, shard).await.expect("redis").pop();
    let mut note = |name: &str, value: String| {
        facts.insert(format!("bucket {shard}: {name}"), value);
    };
    let field = |name: &str, unset: &str| meta.get(name).cloned().unwrap_or_else(|| unset.to_owned());
    note("script", script.to_string());
    note("state", field("state", "missing"));
    note("epoch", field("epoch", "-"));
    note("stock", if stock == Reply::Nil { "-".to_owned() } else { stock.text() });
    note("accepted", field("number", "-"));
    note("sent", field("out", "0"));
    note("received", field("in", "0"));
    note("taken", field(&format!("to:{other}"), "0"));
    note("given", field(&format!("from:{other}"), "0"));
    note("got", field(&format!("got:{other}"), "-"));
    note("record", pending.map_or_else(|| "-".to_owned(), |one| format!("{} {}", one.number, one.units)));
}
