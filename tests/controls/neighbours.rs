//! Two sales in one queue: what P5 and a consumer do for one does not wait for the other.

use crate::scene::{QUICK, ROUNDS_MS, lose_the_keys};
use crate::support::world::database_sessions::Session;
use crate::support::world::fault_injection::REFUSING_TRIGGER;
use crate::support::world::{World, eventually, time_passes};
use crate::{Plays, harms_without};
use seckill::domain::ids::SaleId;
use seckill::faults::Mechanism;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// One queue, one writer, and short waits for a row that is locked.
const ONE_QUEUE: &[&str] = &[
    "rabbitmq.queues=1",
    "p4_persist.writers_count=1",
    "p4_persist.retry_delay_ms=200",
    "mysql.statement_timeout_ms=1500",
];
/// A consumer has met a locked row twice by then.
const LOCK_WAITS_MS: u64 = 3_000;

/// A world with an order of the quiet sale and one of the busy sale, both at the broker; no consumer runs.
async fn two_sales(set: &[&str]) -> (World, SaleId, SaleId) {
    let world = World::with(&[Api, Relay], &[ONE_QUEUE, set].concat()).await;
    let (quiet, busy) = (world.sale("quiet", 10, Some(1)).await, world.sale("busy", 10, Some(1)).await);
    world.bought(&quiet, "alice").await;
    world.bought(&busy, "bob").await;
    eventually("both are at the broker", async || world.outbox().await == (0, 0)).await;
    (world, quiet, busy)
}

/// Another session takes the busy sale's row.
async fn busy_is_locked(world: &World) -> Session {
    let mut other = Session::open(world).await;
    other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'busy'").await;
    other
}

fn found_without(orders: i64, what: &str) -> Vec<String> {
    if orders == 0 { vec![what.to_owned()] } else { Vec::new() }
}

#[test]
fn an_order_is_a_dead_letter_because_of_another_sales_locked_row_when_a_group_meets_it_as_a_whole() {
    harms_without(Mechanism::LockedApart, async |_| {
        let (world, quiet, _) = two_sales(&["p4_persist.attempts_max=1"]).await;
        let mut other = busy_is_locked(&world).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        let is_over = async || world.orders(&quiet).await == 1 || !world.mq_dlq().await.is_empty();
        eventually("alice's order, or a dead letter", is_over).await;
        let orders = world.orders(&quiet).await;
        other.run("ROLLBACK").await;
        consumer.stop().await;
        world.stop().await;
        found_without(orders, "alice's order is a dead letter")
    });
}

#[test]
fn an_order_waits_for_another_sales_locked_row_when_a_consumer_keeps_its_group() {
    harms_without(Mechanism::LockedSentBack, async |plays| {
        let (world, quiet, _) = two_sales(&[]).await;
        let mut other = busy_is_locked(&world).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        match plays {
            Plays::With => eventually("alice's order", async || world.orders(&quiet).await == 1).await,
            Plays::Without => time_passes(LOCK_WAITS_MS).await,
        }
        let orders = world.orders(&quiet).await;
        other.run("ROLLBACK").await;
        consumer.stop().await;
        world.stop().await;
        found_without(orders, "alice's order waits")
    });
}

#[test]
fn the_orders_of_a_sale_whose_row_was_locked_once_are_never_written_when_it_is_not_tried_again() {
    harms_without(Mechanism::LockedTriedAgain, async |plays| {
        let (world, _, busy) = two_sales(&[]).await;
        let mut other = busy_is_locked(&world).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        eventually("it is sent back", async || world.waiting_in("seckill.retry").await == 1).await;
        other.run("ROLLBACK").await;
        match plays {
            Plays::With => eventually("bob's order", async || world.orders(&busy).await == 1).await,
            Plays::Without => time_passes(ROUNDS_MS).await,
        }
        let orders = world.orders(&busy).await;
        consumer.stop().await;
        world.stop().await;
        found_without(orders, "bob's order is never written")
    });
}

/// Whether the quiet sale is in its second epoch.
async fn is_rebuilt(world: &World) -> bool {
    world.rows("sales", "sale_id = 'quiet' AND epoch > 1").await == 1
}

/// A world whose quiet sale lost its keys, with nothing of it on its way; an order of the busy one waits in a retry queue for a minute.
async fn a_broken_sale() -> (World, SaleId, SaleId) {
    let set = [QUICK, &["rabbitmq.queues=1", "p4_persist.retry_delay_ms=60000", "p4_persist.retry_delay_max_ms=60000"]]
        .concat();
    let world = World::with(&[Api, Relay], &set).await;
    let (quiet, busy) = (world.sale("quiet", 10, Some(1)).await, world.sale("busy", 10, Some(1)).await);
    let consumer = world.extra_roles(&[Consumer], |_| {});
    world.ordered(&quiet, "alice").await;
    world.sql(REFUSING_TRIGGER).await;
    world.bought(&busy, "cursed").await;
    eventually("it is sent back", async || world.waiting_in("seckill.retry").await == 1).await;
    consumer.stop().await;
    world.sql("DROP TRIGGER curse").await;
    lose_the_keys(&world, &quiet).await;
    (world, quiet, busy)
}

/// Nothing is found if the quiet sale is rebuilt.
async fn rebuilt_or_not(world: World, plays: Plays) -> Vec<String> {
    let leader = world.extra_roles(&[Reconcile], |_| {});
    match plays {
        Plays::With => eventually("a rebuild", async || is_rebuilt(&world).await).await,
        Plays::Without => time_passes(2 * ROUNDS_MS).await,
    }
    let rebuilt = is_rebuilt(&world).await;
    leader.stop().await;
    world.stop().await;
    if rebuilt { Vec::new() } else { vec!["the quiet sale sells nothing".to_owned()] }
}

#[test]
fn a_sale_is_never_rebuilt_when_it_waits_for_the_messages_of_another_one() {
    harms_without(Mechanism::OwnMessagesOnly, async |plays| {
        let (world, ..) = a_broken_sale().await;
        rebuilt_or_not(world, plays).await
    });
}

#[test]
fn a_sale_is_never_rebuilt_when_a_round_ends_with_another_one_that_fails() {
    harms_without(Mechanism::RoundGoesOn, async |plays| {
        let (world, _, busy) = a_broken_sale().await;
        // It comes first, and P5 cannot read it.
        let meta = world.servers.redis.keys.meta(0, &busy);
        world.redis(&["DEL", &meta]).await;
        world.redis(&["SET", &meta, "wrong"]).await;
        rebuilt_or_not(world, plays).await
    });
}
