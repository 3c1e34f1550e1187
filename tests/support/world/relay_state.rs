//! What tests of the relay read and do: its outbox, its attempts, its DLQ, its queues.

use super::outbox_kinds::STREAM;
use super::{World, eventually, shared};
use crate::support::basics::resp::RawRedis;
use seckill::domain::message::OrderMessage;
use seckill::store::rabbit::Consumer as QueueReader;
use seckill::store::redis::OutboxEntry;
use std::time::Duration;

/// Reads at least `count` orders for a consumer as a relay does that dies right afterwards. Returns how many: an entry may have
/// several.
pub async fn read_and_die(world: &World, consumer: &str, count: usize) -> usize {
    let mut read = 0;
    while read < count {
        let entries = (count - read).div_ceil(if world.outbox_set() == STREAM { 64 } else { 1 });
        // A list gives no more than 1,000 at once.
        let entries = world.servers.redis.outbox.new_entries(0, consumer, entries).await.expect("entries");
        assert!(!entries.is_empty(), "{read} of {count}");
        read += entries.iter().map(OutboxEntry::orders).sum::<usize>();
    }
    read
}

/// Failed attempts of every entry that has any.
pub async fn attempts(world: &World) -> Vec<u64> {
    let counts = world.redis(&["HVALS", &world.servers.redis.keys.attempts(0)]).await;
    let counts = counts.as_array().expect("a list").iter();
    counts.map(|count| count.as_str().expect("a count").parse().expect("a number")).collect()
}

/// Entries in the relay DLQ.
pub async fn parked(world: &World) -> u64 {
    world.servers.redis.relay_dlq.count(0).await.expect("redis")
}

/// Waits until the outbox is empty, and nothing else remembers its entries.
pub async fn nothing_is_left(world: &World) {
    eventually("an empty outbox", async || world.outbox().await == (0, 0)).await;
    assert_eq!(attempts(world).await, Vec::<u64>::new(), "attempts of entries that are gone");
}

/// The first `count` orders that arrive in the queue, in their order. They are not taken: who consumes afterwards gets them.
pub async fn arrived(world: &World, count: usize) -> Vec<OrderMessage> {
    let mut reader = QueueReader::connect(&world.servers.rabbit, &[0], 10_000).await.unwrap();
    let mut orders = Vec::new();
    while orders.len() < count {
        let group = reader.recv_group(1_000, Duration::from_secs(10)).await.unwrap();
        assert!(!group.is_empty(), "only {} arrived", orders.len());
        orders.extend(group.into_iter().map(|mut delivery| delivery.take_order().unwrap()));
    }
    orders
}

/// The stream of this world.
pub fn outbox_key(world: &World) -> String {
    world.servers.redis.keys.outbox(0)
}

/// Nothing names a relay or an entry any more: no processing list, no hands, no attempts.
pub async fn no_relay_is_named(world: &World) {
    nothing_is_left(world).await;
    let keys = RawRedis::of(world).await.keys().await;
    let left = |key: &&String| ["outbox", "processing", "hands", "attempts"].iter().any(|name| key.contains(name));
    assert_eq!(keys.iter().find(left), None);
}

/// Limits the order queues to `max` messages, or no more.
pub async fn limit_queues(world: &World, max: Option<u32>) {
    limit(world, "orders", max).await;
}

/// Limits one order queue to `max` messages, or no more.
pub async fn limit_order_queue(world: &World, queue: u16, max: Option<u32>) {
    limit(world, &format!("orders.{queue}$"), max).await;
}

async fn limit(world: &World, pattern: &str, max: Option<u32>) {
    let vhost = world.vhost();
    let program = match max {
        Some(max) => format!(
            "rabbit_policy:set(<<\"{vhost}\">>, <<\"full\">>, <<\"{pattern}\">>, [{{<<\"max-length\">>, {max}}}], 0, <<\"queues\">>, <<\"guest\">>).\n"
        ),
        None => format!("rabbit_policy:delete(<<\"{vhost}\">>, <<\"full\">>, <<\"guest\">>).\n"),
    };
    let answer = shared().await.ask_broker(&program).await.expect("an answer");
    assert!(answer.contains("{ok, ok}"), "{answer}");
}

/// Makes one order queue answer no call, neither publishers nor declarations, or answer again.
pub async fn silence_order_queue(world: &World, queue: u16, is_silent: bool) {
    let (vhost, act) = (world.vhost(), if is_silent { "suspend" } else { "resume" });
    let program = format!("sys:{act}(whereis('{vhost}_seckill.orders.{queue}')).\n");
    let answer = shared().await.ask_broker(&program).await.expect("an answer");
    assert!(answer.contains("{ok, ok}"), "{answer}");
}
