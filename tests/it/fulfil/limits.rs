//! `limit_returns`: an order that ends unpaid no longer counts against its buyer's limit, in the database and in Redis, and after a
//! rebuild.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::order_life::PaymentTerms;
use seckill::roles::Role;

const RETURNS: PaymentTerms = PaymentTerms { limit_returns: true, ..LONG };

#[test]
fn who_did_not_pay_may_buy_again_where_the_sale_says_so() {
    run(async {
        let world = World::with(&Role::ALL, &["redis.shards=2"]).await;
        let one = world.paying_sale("one", 10, Some(1), RETURNS).await;
        let three = world.paying_sale("three", 10, Some(3), RETURNS).await;
        let alice = world.ordered(&one, "alice").await;
        assert_eq!(world.buy(&one, "alice", 1, None).await.status, 409);
        world.overdue(alice).await;
        eventually("she may again", async || world.buy(&one, "alice", 1, None).await.status == 202).await;
        assert_eq!(world.buy(&one, "alice", 1, None).await.status, 409, "once");

        let bought = world.buy(&three, "bob", 2, None).await;
        let first = seckill::domain::ids::RequestId::parse(&bought.text("request_id")).unwrap();
        world.ordered(&three, "bob").await;
        assert_eq!(world.buy(&three, "bob", 1, None).await.status, 409);
        eventually("landed", async || world.rows("purchases", "user_id = 'bob' AND quantity = 3").await == 1).await;
        world.overdue(first).await;
        eventually("two of three are free", async || world.buy(&three, "bob", 2, None).await.status == 202).await;
        assert_eq!(world.buy(&three, "bob", 1, None).await.status, 409);
        eventually("counted", async || world.rows("purchases", "user_id = 'bob' AND quantity = 3").await == 1).await;

        // The same when the buyer cancels.
        let bought = world.buy(&three, "carol", 2, None).await;
        let first = seckill::domain::ids::RequestId::parse(&bought.text("request_id")).unwrap();
        let second = world.ordered(&three, "carol").await;
        eventually("landed", async || world.rows("purchases", "user_id = 'carol' AND quantity = 3").await == 1).await;
        assert_eq!(world.buy(&three, "carol", 1, None).await.status, 409);
        for _ in 0..2 {
            assert_eq!(world.cancel_mine("carol", first).await.text("state"), "CANCELLED");
            assert_eq!(
                world.rows("purchases", "user_id = 'carol' AND quantity = 1").await,
                1,
                "a repeat returns nothing"
            );
        }
        eventually("two of three are free", async || world.buy(&three, "carol", 2, None).await.status == 202).await;
        assert_eq!(world.buy(&three, "carol", 1, None).await.status, 409);
        assert!(world.order_in("UNPAID", second).await);
        eventually("counted", async || world.rows("purchases", "user_id = 'carol' AND quantity = 3").await == 1).await;
        world.finish().await;
    });
}

#[test]
fn a_rebuild_knows_which_orders_count_no_more() {
    run(async {
        let set = ["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=1000"];
        let world = World::with(&Role::ALL, &set).await;
        let sale = world.paying_sale("again", 10, Some(1), RETURNS).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        world.overdue(alice).await;
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        eventually("given", async || world.rows("stock_grants", "applied_at IS NULL").await == 0).await;
        let redis = &world.servers.redis;
        let keys = redis.keys.of_warmed(0, &sale);
        world.redis(&[&["DEL"], keys.iter().map(String::as_str).collect::<Vec<_>>().as_slice()].concat()).await;
        eventually("rebuilt", async || {
            let meta = redis.sale_keys.meta(&sale, 0).await.unwrap();
            meta.is_some_and(|meta| meta.epoch == 2 && meta.state.code() == "open")
        })
        .await;
        assert_eq!(redis.stock.units(&sale, 0).await.unwrap(), Some(9));
        eventually("alice may", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 409, "his order stands");
        assert!(world.order_in("UNPAID", bob).await);
        world.finish().await;
    });
}

#[test]
fn a_buyer_who_buys_and_cancels_all_the_time_is_out_of_turns_and_the_units_are_for_others() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let sale = world.paying_sale("cycles", 3, Some(1), RETURNS).await;
        for _ in 0..11 {
            eventually("she may buy", async || world.buy(&sale, "alice", 1, None).await.status == 202).await;
            let newest = "SELECT CAST(COALESCE(MAX(request_id), 0) AS SIGNED) AS n FROM orders WHERE state = 'UNPAID'";
            eventually("an order", async || world.number(newest).await > 0).await;
            let order = u64::try_from(world.number(newest).await).unwrap();
            let order = seckill::domain::ids::RequestId::new(order).unwrap();
            assert_eq!(world.cancel_mine("alice", order).await.text("state"), "CANCELLED");
        }
        assert_eq!(world.rows("orders", "state = 'CANCELLED' AND limit_returned").await, 10);
        eventually("all units", async || world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(3)).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 409, "the last one still counts");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        world.finish().await;
    });
}
