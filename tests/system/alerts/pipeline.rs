//! Alerts about the pipeline, fired by what they are about: queues that are full, long, deleted or left alone, a relay that
//! is too slow, entries deleted under it, unreadable messages.

use crate::support::outside::prometheus::Prometheus;
use crate::support::processes::own_redis;
use crate::support::world::fault_injection::{channel, delete_order_queue};
use crate::support::world::relay_state::limit_queues;
use crate::support::world::{World, eventually, run_waiting};
use amqprs::channel::QueuePurgeArguments;
use seckill::roles::Role::Api;
use seckill::store::rabbit::{Topology, declare};

/// Fills the outbox with entries that no relay can read; a tenth of `p1_entry.backlog_max` and some.
const FILL: &str = "for i = 1, 150000 do redis.call('XADD', KEYS[1], '*', 'x', 'x') end";

#[test]
fn a_full_queue_a_long_outbox_and_entries_deleted_under_the_relay_are_reported() {
    run_waiting(async {
        let redis = own_redis::start("alerts-outbox-redis").await;
        let world = World::on_redis(&redis.url(), "alerts-outbox", &[Api], &[]).await;
        let sale = world.sale("outbox", 10_000, None).await;
        let relay = world.process("relay", "", &["p3_relay.attempts_max=100000", "p3_relay.backoff_max_ms=200"]);
        let p5 = world.process("reconcile", "", &["p5_reconcile.interval_ms=300"]);
        let tower = Prometheus::over("alerts-outbox", &[&relay, &p5]).await;

        let idle = tower.before("no consumer started", &["SeckillNobodyConsumes"]).await;
        idle.fires().await;

        let full = tower.before("an order queue limited to one message", &["SeckillRelayNacks"]).await;
        let unpublished = tower.before("1,500 orders landed by P5 without a consumer", &["SeckillEventsUntold"]).await;
        limit_queues(&world, Some(1)).await;
        world.sell(&sale, 1_500).await;
        full.fires().await;

        let long = tower.before("150,000 entries in the outbox", &["SeckillOutboxFills"]).await;
        let outbox = world.servers.redis.keys.outbox(0);
        world.redis(&["EVAL", FILL, "1", &outbox]).await;
        long.fires().await;

        // Found by the relay's next life, at its start: before anybody scrapes it.
        let harm = tower.before("the outbox trimmed after a relay died with entries", &["SeckillOutboxTampered"]).await;
        drop(relay);
        world.redis(&["XTRIM", &outbox, "MAXLEN", "0"]).await;
        let relay = world.process("relay", "", &[]);
        relay.until_metric("seckill_p3_relay_deleted_total", |deleted| deleted > 0.0).await;
        tower.scrape(&[&relay, &p5]).await;
        long.resolves().await;
        harm.fires().await;
        unpublished.fires().await;

        limit_queues(&world, None).await;
        let consumer = world.process("consumer", "", &[]);
        tower.scrape(&[&relay, &p5, &consumer]).await;
        idle.resolves().await;
        unpublished.resolves().await;
        world.finish().await;
    });
}

#[test]
fn a_deleted_queue_a_long_one_and_unreadable_messages_are_reported() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("queues", 10_000, None).await;
        let (relay, p5) = (world.process("relay", "", &[]), world.process("reconcile", "", &[]));
        let tower = Prometheus::over("alerts-queues", &[&relay, &p5]).await;
        declare(&world.servers.rabbit).await.unwrap();
        world.bought(&sale, "first").await;
        eventually("the first in its queue", async || world.waiting_in("seckill.orders").await == 1).await;

        let returned = tower.before("the order queue deleted", &["SeckillRelayReturned"]).await;
        delete_order_queue(&world.servers.rabbit).await;
        world.bought(&sale, "second").await;
        returned.fires().await;

        let long = tower.before("10,020 messages in the order queue", &["SeckillQueueGrows"]).await;
        // In parts: each has its own time for its confirms.
        for _ in 0..4 {
            world.publish(&vec![b"?".to_vec(); 2_505]).await;
        }
        long.fires().await;
        let (connection, channel) = channel(&world.servers.rabbit).await;
        let queue = Topology::new(&world.servers.rabbit).orders_queue(0);
        channel.queue_purge(QueuePurgeArguments::new(&queue)).await.unwrap();
        connection.close().await.unwrap();
        long.resolves().await;

        let foreign = ["SeckillParked", "SeckillParkedForeign"].as_slice();
        let foreign = tower.before("an unknown message in the order queue", foreign).await;
        let consumer = world.process("consumer", "", &[]);
        world.publish(&[b"?".to_vec()]).await;
        foreign.fires().await;
        let parked = world.cli(&["dlq", "list", "--json"]).exits(0).out;
        let entry = parked.split('"').find(|word| word.starts_with("mq/")).expect("its name");
        world.cli(&["dlq", "give-up", entry, "--reason", "not ours"]).exits(0);
        foreign.resolves().await;
        drop(consumer);
        world.finish().await;
    });
}

#[test]
fn events_that_wait_and_one_that_cannot_be_read_are_reported() {
    run_waiting(async {
        let world = World::with(&[], &[]).await;
        let p5 = world.process("reconcile", "", &[]);
        let tower = Prometheus::over("alerts-events", &[&p5]).await;
        let late = tower.before("an event of an hour ago, and no consumer", &["SeckillEventsLate"]).await;
        let old = "INSERT INTO order_events (request_id, event_key, body, created_at) VALUES \
                   (1, 'order.paid', '{}', NOW(3) - INTERVAL 1 HOUR)";
        world.sql(old).await;
        late.fires().await;
        let unreadable = tower.before("a row that is no event", &["SeckillEventsUnreadable"]).await;
        world.sql("INSERT INTO order_events (request_id, event_key, body) VALUES (2, 'order.paid', '?')").await;
        let consumer = world.process("consumer", "", &[]);
        tower.scrape(&[&p5, &consumer]).await;
        late.resolves().await;
        unreadable.fires().await;
        world.sql("DELETE FROM order_events").await;
        unreadable.resolves().await;
        world.finish().await;
    });
}

#[test]
fn a_relay_that_is_too_slow_is_reported() {
    run_waiting(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("late", 10_000, None).await;
        let (relay, consumer) =
            (world.process("relay", "", &["p3_relay.rate_per_s=15"]), world.process("consumer", "", &[]));
        let tower = Prometheus::over("alerts-late", &[&relay, &consumer]).await;
        let late = tower.before("600 orders at once for a relay of 15 a second", &["SeckillLandsLate"]).await;
        world.sell(&sale, 600).await;
        late.fires().await;
        drop(relay);
        let quick = world.process("relay", "", &[]);
        late.resolves().await;
        world.settled(&sale).await;
        drop(quick);
        world.finish().await;
    });
}
