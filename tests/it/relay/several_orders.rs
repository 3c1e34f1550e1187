//! Entries with several orders: beside entries of the form of 0.2.0 that has one, and when their attempts are spent.

use crate::support::links::link::Link;
use crate::support::world::fault_injection::port_of;
use crate::support::world::outbox_kinds::orders_of;
use crate::support::world::relay_state::{nothing_is_left, parked};
use crate::support::world::{World, eventually, run};
use seckill::config::ServerUrl;
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::message::encode;
use seckill::domain::policy::Quantity;
use seckill::domain::request::Purchase;
use seckill::domain::reserve::Reserved;
use seckill::p5_reconcile::request_history;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::store::redis::RedisStore;
use std::collections::BTreeSet;
use std::time::Duration;

/// How an entry of the stream is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryForm {
    /// Up to 64 orders, as the script writes it.
    Lines,
    /// One order, as 0.2.0 wrote it with `redis.outbox_format` 1.
    Old,
}

/// Has the script accept a group in one call; the ids in their order. No relay may be at work when the form is to be the old one.
pub(super) async fn accepted(
    world: &World,
    sale: &SaleId,
    form: EntryForm,
    buyers: std::ops::Range<u64>,
) -> Vec<RequestId> {
    let before = world.servers.redis.outbox.page(0, "-", 1_000).await.unwrap().len();
    let store = RedisStore::start(&world.settings.redis, None).expect("a handle");
    assert!(store.wait_connected(Duration::from_secs(10)).await, "redis connects");
    let of = |buyer: u64| Purchase {
        request_id: RequestId::new(2_000_000_000_000 + buyer).unwrap(),
        sale_id: sale.clone(),
        user_id: UserId::parse(&format!("buyer \"{buyer}\" of several")).unwrap(),
        person: None,
        quantity: Quantity::new(1 + u32::try_from(buyer % 2).unwrap()).unwrap(),
    };
    let purchases: Vec<Purchase> = buyers.map(of).collect();
    let group: Vec<&Purchase> = purchases.iter().collect();
    let life = store.boot_fence.incarnation(0).await.expect("redis");
    store.boot_fence.load_script(0, &life).await.expect("loaded");
    let reserved = store.stock.reserve(sale, 0, 1, &group).await.expect("the script ran").reserved;
    assert!(reserved.iter().all(|one| *one == Reserved::Accepted), "{reserved:?}");
    if form == EntryForm::Old {
        split(world, before).await;
    }
    purchases.iter().map(|purchase| purchase.request_id).collect()
}

/// Writes each order of the entries behind the first `kept` ones as an entry of its own.
async fn split(world: &World, kept: usize) {
    let (outbox, more) = (world.servers.redis.keys.outbox(0), world.servers.redis.keys.outbox_more(0));
    for entry in world.servers.redis.outbox.page(0, "-", 1_000).await.unwrap().into_iter().skip(kept) {
        let orders = orders_of(&entry);
        for order in &orders {
            let (purchase, message) = (&order.purchase, encode(order));
            let id = purchase.request_id.to_string();
            world.redis(&["XADD", &outbox, "*", "r", &id, "s", purchase.sale_id.as_str(), "p", &message]).await;
        }
        world.redis(&["XDEL", &outbox, &entry.id]).await;
        world.redis(&["DECRBY", &more, &(orders.len() - 1).to_string()]).await;
    }
}

#[test]
fn a_group_is_an_entry_for_each_64_orders_and_both_forms_are_persisted_side_by_side() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("forms", 1_000, Some(9)).await;
        // A process of before, one of now, and the one of before again.
        accepted(&world, &sale, EntryForm::Old, 0..3).await;
        let in_lines = accepted(&world, &sale, EntryForm::Lines, 3..133).await;
        accepted(&world, &sale, EntryForm::Old, 133..135).await;
        let entries = world.servers.redis.outbox.page(0, "-", 100).await.unwrap();
        let orders: Vec<usize> = entries.iter().map(|entry| entry.orders()).collect();
        assert_eq!(orders, [1, 1, 1, 64, 64, 2, 1, 1]);
        assert_eq!(world.outbox().await, (135, 0), "the depth counts orders");
        let history = request_history(&world.reconcile_context(), in_lines[70]).await;
        assert_eq!(history.outbox_entry.as_deref(), Some(entries[4].id.as_str()), "an order is found in its entry");

        let consumer = world.extra_roles(&[Relay, Consumer], |_| {});
        eventually("all orders", async || world.orders(&sale).await == 135).await;
        nothing_is_left(&world).await;
        let key = world.servers.redis.keys.outbox_more(0);
        assert_eq!(world.redis(&["EXISTS", &key]).await, 0, "an empty outbox has no orders");
        let numbers =
            world.rows("orders", &format!("sale_id = '{sale}' AND user_id LIKE 'buyer \"%\" of several'")).await;
        assert_eq!(numbers, 135);
        consumer.stop().await;
        world.finish().await;
    });
}

#[test]
fn an_entry_whose_attempts_are_spent_is_parked_order_by_order_and_each_is_persisted_from_there() {
    run(async {
        let set = ["rabbitmq.connect_timeout_ms=500", "p3_relay.attempts_max=3"];
        let world = World::with(&[Api, Consumer], &set).await;
        let sale = world.sale("spent", 100, Some(9)).await;
        let hole = Link::before(port_of(world.settings.rabbitmq.url.expose())).await;
        hole.loses_answers(true);
        // What a stream of before may have: one order an entry, which is parked as it is.
        let mut ids = accepted(&world, &sale, EntryForm::Old, 5..7).await;
        ids.extend(accepted(&world, &sale, EntryForm::Lines, 0..5).await);
        let relay = world.extra_roles(&[Relay], |settings| {
            settings.rabbitmq.url = ServerUrl::new(hole.url(settings.rabbitmq.url.expose()));
        });
        eventually("the relay DLQ", async || parked(&world).await == 7).await;
        nothing_is_left(&world).await;
        let page = world.servers.redis.relay_dlq.page(0, "-", 10).await.unwrap();
        let named: BTreeSet<RequestId> = page.iter().filter_map(|entry| entry.request_id).collect();
        assert_eq!(named, ids.iter().copied().collect(), "each order by its own id");
        assert!(page.iter().all(|entry| entry.attempts == 3 && !entry.reason.is_empty()), "{page:?}");
        let reconcile = world.extra_roles(&[Reconcile], |_| {});
        eventually("all orders", async || world.orders(&sale).await == 7).await;
        eventually("an empty relay DLQ", async || parked(&world).await == 0).await;
        reconcile.stop().await;
        relay.stop().await;
        world.finish().await;
    });
}

#[test]
fn orders_in_lines_that_are_damaged_on_their_way_are_persisted_from_the_ledger() {
    run(async {
        let world = World::with(&[Api, Consumer, Relay], &[]).await;
        let sale = world.sale("torn", 100, Some(9)).await;
        accepted(&world, &sale, EntryForm::Lines, 0..4).await;
        eventually("the first four", async || world.orders(&sale).await == 4).await;
        nothing_is_left(&world).await;
        // An entry whose second line is no order: the relay passes it on unopened, the consumer cannot read it.
        let outbox = world.servers.redis.keys.outbox(0);
        let lines = format!("@0 1 1 5 {sale}\n2000000000009 1 torn\nno order\n");
        world.redis(&["XADD", &outbox, "*", "s", sale.as_str(), "n", "2", "o", &lines]).await;
        eventually("the MQ DLQ", async || world.waiting_in("seckill.dlq").await == 1).await;
        nothing_is_left(&world).await;
        world.cli(&["dlq", "list"]).exits(0);
        let accepted_after = accepted(&world, &sale, EntryForm::Lines, 10..12).await;
        eventually("the next ones", async || world.orders(&sale).await == 6).await;
        assert_eq!(accepted_after.len(), 2, "a damaged message blocks no other");
        world.stop().await;
    });
}
