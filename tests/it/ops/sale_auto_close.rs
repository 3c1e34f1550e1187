//! A sale that is over is closed by itself once nothing of it is on its way; its keys leave Redis, its orders are still answered.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::domain::sale::SaleStatus;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::sales::rows::acts::ActFilter;

const QUICK: [&str; 2] = ["p5_reconcile.interval_ms=100", "p1_entry.token_ttl_s=1"];
const CLOSES: [&str; 2] = ["p5_reconcile.interval_ms=100", "p5_reconcile.auto_close_after_s=1"];

/// The sale ended a minute ago.
async fn ends(world: &World, sale: &SaleId) {
    let minutes = "starts_at = NOW(3) - INTERVAL 2 MINUTE, ends_at = NOW(3) - INTERVAL 1 MINUTE";
    world.sql(&format!("UPDATE sales SET {minutes} WHERE sale_id = '{sale}'")).await;
    world.sale_control().warm(sale).await.unwrap();
}

async fn status(world: &World, sale: &SaleId) -> SaleStatus {
    world.servers.rows.sales.get(sale).await.unwrap().unwrap().status
}

async fn in_redis(world: &World, sale: &SaleId) -> bool {
    let key = world.servers.redis.keys.meta(0, sale);
    world.redis(&["EXISTS", &key]).await.as_u64() == Some(1)
}

/// Rounds of the reconciler that have audited this sale since, by what they write down.
async fn audited_again(world: &World, sale: &SaleId) {
    let before =
        world.number(&format!("SELECT COALESCE(MAX(run_id), 0) AS n FROM audit_runs WHERE sale_id = '{sale}'")).await;
    let newer = format!("sale_id = '{sale}' AND run_id > {}", before + 1);
    eventually("two rounds", async || world.rows("audit_runs", &newer).await > 0).await;
}

#[test]
fn a_sale_that_is_over_closes_by_itself_when_its_last_order_is_paid() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &QUICK).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("over", 10, Some(1), LONG).await;
        let running = world.sale("running", 10, Some(1)).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        ends(&world, &sale).await;
        let quick = |settings: &mut seckill::config::Settings| {
            (settings.p5_reconcile.auto_close_after_s, settings.p5_reconcile.ledger_retention_s) = (1, 2);
        };
        let p5 = world.extra_roles(&[Reconcile], quick);
        audited_again(&world, &sale).await;
        assert_eq!(admin.pay(alice, "one").await.status, 200);
        audited_again(&world, &sale).await;
        assert_eq!(status(&world, &sale).await, SaleStatus::Warmed, "bob has not paid");
        assert_eq!(admin.pay(bob, "two").await.status, 200);
        eventually("closed", async || status(&world, &sale).await == SaleStatus::Closed).await;
        eventually("gone from redis", async || !in_redis(&world, &sale).await).await;
        assert_eq!(status(&world, &running).await, SaleStatus::Warmed, "a sale that sells is left alone");
        // Late questions.
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "CONFIRMED");
        assert_eq!(world.my_order("bob", bob).await.text("state"), "PAID");
        eventually("over for buyers", async || world.buy(&sale, "carol", 1, None).await.code() == "P1-S6").await;
        let of_sale = ActFilter { sale_id: Some(sale), limit: 10, ..ActFilter::default() };
        let kept = world.servers.rows.acts.list(&of_sale).await.unwrap();
        let closed = kept.iter().filter(|act| act.action == "sale.close");
        let seen: Vec<_> =
            closed.map(|act| (act.action.as_str(), act.actor_kind.as_str(), act.actor_id.as_str())).collect();
        assert_eq!(seen, [("sale.close", "service", "p5_reconcile")], "on record, once");
        p5.stop().await;
        world.finish().await;
    });
}

#[test]
fn never_and_too_early_leave_an_ended_sale_open() {
    run(async {
        let world = World::with(&[], &QUICK).await;
        let sale = world.sale("stays", 10, Some(1)).await;
        ends(&world, &sale).await;
        for after_s in [0, 3_600] {
            let p5 = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.auto_close_after_s = after_s);
            audited_again(&world, &sale).await;
            assert_eq!(status(&world, &sale).await, SaleStatus::Warmed, "{after_s}");
            p5.stop().await;
        }
        world.finish().await;
    });
}

#[test]
fn what_is_on_its_way_keeps_an_ended_sale_open() {
    run(async {
        // No relay: the request stays in the outbox.
        let mut world = World::with(&[Api], &QUICK).await;
        let sale = world.sale("landing", 10, Some(1)).await;
        let id = world.bought(&sale, "alice").await;
        ends(&world, &sale).await;
        let p5 = world.extra_roles(&[Reconcile], |settings| {
            settings.p5_reconcile.auto_close_after_s = 1;
            settings.p5_reconcile.window_ms = 3_600_000;
        });
        audited_again(&world, &sale).await;
        assert_eq!(status(&world, &sale).await, SaleStatus::Warmed, "a request is in the outbox");
        world.stop_roles().await;
        world.start_roles(&[Api, Relay, Consumer]).await;
        eventually("closed", async || status(&world, &sale).await == SaleStatus::Closed).await;
        assert_eq!(world.status_of(&sale, "alice", id).await.0, "CONFIRMED");
        p5.stop().await;
        world.finish().await;
    });
}

#[test]
fn an_automatic_close_that_dies_before_redis_is_finished_by_the_next_leader() {
    run(async {
        let world = World::with(&[], &QUICK).await;
        let sale = world.sale("dies", 10, Some(1)).await;
        ends(&world, &sale).await;
        world.process("reconcile", "F43=return", &CLOSES).dies_at("F43").await;
        assert_eq!(status(&world, &sale).await, SaleStatus::Closed);
        assert!(in_redis(&world, &sale).await, "redis does not know it");
        let next = world.extra_roles(&[Reconcile], |_| {});
        eventually("gone from redis", async || !in_redis(&world, &sale).await).await;
        next.stop().await;
        world.finish().await;
    });
}
