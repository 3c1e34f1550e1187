//! One request that Redis accepted twice, because it forgot the first time before the database had it: the request is decided
//! once, and its other number heals by itself.

use super::rebuild_and_grants::QUICK;
use crate::support::basics::time::eventually;
use crate::support::world::{World, run};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::domain::message::{OrderMessage, encode};
use seckill::domain::sale::MetaState;
use seckill::p5_reconcile::{FindingKind, Window};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

const SHORT: &[&str] = &["p5_reconcile.window_ms=3000"];

/// Redis accepts `x`'s request and forgets it, accepts `y` under its number, and then `x`'s repeat under the next one. Nothing has
/// left Redis. Returns the request and its first message.
async fn accepted_twice(world: &World, sale: &SaleId, of_y: u32) -> (RequestId, OrderMessage) {
    let (redis, mut copies) = (&world.servers.redis, Vec::new());
    for key in redis.keys.of_warmed(0, sale) {
        let copy = format!("copy-of-{key}");
        world.redis(&["COPY", &key, &copy]).await;
        copies.push((key, copy));
    }
    let (token, id) = world.token(sale, "x").await;
    let id = RequestId::parse(&id).unwrap();
    assert_eq!(world.buy(sale, "x", 2, Some(&token)).await.status, 202);
    let record = redis.ledger.lookup(sale, 0, &[id]).await.unwrap().remove(0).unwrap();
    let first = record.order_message(id, sale, 0);
    world.redis(&["XTRIM", &redis.keys.outbox(0), "MAXLEN", "0"]).await;
    for (key, copy) in &copies {
        world.redis(&["DEL", key]).await;
        world.redis(&["COPY", copy, key]).await;
    }
    assert_eq!(world.buy(sale, "y", of_y, None).await.status, 202);
    assert_eq!(world.buy(sale, "x", 2, Some(&token)).await.status, 202);
    let again = redis.ledger.lookup(sale, 0, &[id]).await.unwrap().remove(0).unwrap();
    assert_eq!((first.number, again.number), (1, 2));
    (id, first)
}

/// Accepted twice, and the first message has become the order of `x`. No role is left.
async fn first_lands_first(world: &mut World, sale: &SaleId, of_y: u32) -> RequestId {
    let (id, first) = accepted_twice(world, sale, of_y).await;
    world.start_roles(&[Api, Consumer]).await;
    eventually("the queues", async || world.waiting_in("seckill").await == 0).await;
    world.publish(&[encode(&first).into_bytes()]).await;
    eventually("the order", async || world.status_of(sale, "x", id).await.0 == "CONFIRMED").await;
    world.stop_roles().await;
    id
}

/// Until `x` has its order, all messages are gone, and the audit of a round finds nothing.
async fn healed(world: &World, sale: &SaleId, id: RequestId) {
    eventually("an order", async || world.status_of(sale, "x", id).await.0 == "CONFIRMED").await;
    eventually("no dead letter", async || {
        world.waiting_in("seckill").await == 0 && world.rows("failed_request", "status = 'open'").await == 0
    })
    .await;
    eventually("consistent", async || world.audit(sale, Window::Now).await.consistent()).await;
}

/// Closed by its system, and out of Redis.
async fn ends(world: &mut World, sale: &SaleId) {
    world.stop_roles().await;
    world.cli(&["sale", "close", sale.as_str()]).exits(0);
    let short = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
    let meta = world.servers.redis.keys.meta(0, sale);
    eventually("gone from redis", async || world.redis(&["EXISTS", &meta]).await.as_u64() == Some(0)).await;
    short.stop().await;
    world.cli(&["audit", "--now"]).exits(0);
}

#[test]
fn a_request_whose_first_message_lands_first_gives_its_second_number_back() {
    run(async {
        let mut world = World::with(&[Api], &[QUICK, SHORT].concat()).await;
        let sale = world.sale("first", 10, None).await;
        let id = first_lands_first(&mut world, &sale, 2).await;
        assert_eq!(world.orders(&sale).await, 1);
        world.start_roles(&[Api, Relay, Consumer, Reconcile]).await;
        healed(&world, &sale, id).await;
        // Before it is closed, an audit calls it undecided, which is consistent.
        let closed = "first_number = 2 AND units = 2 AND closed_by = 'reconcile'";
        eventually("its number is closed", async || world.rows("closed_findings", closed).await == 1).await;
        // y's number is x's; what the repeat took is offered again.
        eventually("the units are back", async || world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(8))
            .await;
        // The message of y may come after the number of x's repeat is closed.
        eventually("y fails", async || world.rows("failed_request", "reason = 'NUMBER_REUSED'").await == 1).await;
        assert_eq!(world.buy(&sale, "z", 8, None).await.status, 202);
        assert_eq!(world.buy(&sale, "z", 1, None).await.status, 410);
        assert_eq!(world.settled(&sale).await.counted.ordered, 10);
        ends(&mut world, &sale).await;
    });
}

#[test]
fn a_request_whose_second_message_lands_first_leaves_no_dead_letter() {
    run(async {
        let mut world = World::with(&[Api], &[QUICK, SHORT].concat()).await;
        let sale = world.sale("second", 10, None).await;
        let (id, first) = accepted_twice(&world, &sale, 2).await;
        world.start_roles(&[Api, Relay, Consumer]).await;
        eventually("both orders", async || world.orders(&sale).await == 2).await;
        world.publish(&[encode(&first).into_bytes()]).await;
        eventually("a dead letter", async || world.waiting_in("seckill.dlq").await == 1).await;
        world.stop_roles().await;
        world.start_roles(&[Api, Relay, Consumer, Reconcile]).await;
        healed(&world, &sale, id).await;
        assert_eq!(world.rows("closed_findings", "TRUE").await, 0);
        assert_eq!(world.settled(&sale).await.counted.ordered, 4);
        ends(&mut world, &sale).await;
    });
}

/// The number that was given twice had other units: how many Redis has too few cannot be seen from this, and none is offered.
#[test]
fn units_are_kept_back_while_the_books_do_not_add_up() {
    run(async {
        let mut world = World::with(&[Api], &[QUICK, SHORT].concat()).await;
        let sale = world.sale("uneven", 10, None).await;
        first_lands_first(&mut world, &sale, 1).await;
        world.start_roles(&[Api, Consumer, Relay, Reconcile]).await;
        eventually("closed", async || world.rows("closed_findings", "reclaimed_by IS NULL").await == 1).await;
        // The message of y may come after that; until then it is on its way, and an audit of this moment says so.
        eventually("y fails", async || world.rows("failed_request", "reason = 'NUMBER_REUSED'").await == 1).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(audit.findings.iter().all(|finding| finding.kind == FindingKind::Unbalanced), "{audit:#?}");
        assert!(world.servers.redis.stock.units(&sale, 0).await.unwrap() <= Some(8), "{audit:#?}");
        world.stop_roles().await;
    });
}

/// How many units Redis lacks cannot be seen from the balance; the rebuild counts them from the database.
#[test]
fn the_units_of_a_number_that_is_closed_before_a_rebuild_are_sold_again_after_it() {
    run(async {
        let mut world = World::with(&[Api], &[QUICK, SHORT].concat()).await;
        let sale = world.sale("recount", 10, None).await;
        first_lands_first(&mut world, &sale, 1).await;
        world.cli(&["sale", "rebuild", "recount"]).exits(0);
        world.start_roles(&[Api, Consumer, Relay, Reconcile]).await;
        let redis = &world.servers.redis;
        eventually("rebuilt", async || {
            let meta = redis.sale_keys.meta(&sale, 0).await.unwrap();
            meta.is_some_and(|meta| meta.epoch > 1 && meta.state == MetaState::Open)
        })
        .await;
        let closed = "first_number = 2 AND closed_by = 'reconcile'";
        eventually("its number is closed", async || world.rows("closed_findings", closed).await == 1).await;
        assert_eq!(redis.stock.units(&sale, 0).await.unwrap(), Some(8), "all but those of the one order");
        eventually("consistent", async || world.audit(&sale, Window::Now).await.consistent()).await;
        world.stop_roles().await;
    });
}
