//! Negative controls of P6: with one mechanism left out, the audit must show it.

use crate::support::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::p5_reconcile::Window;
use seckill::roles::Role::{Api, Consumer, Relay};

#[test]
fn without_the_condition_a_paid_order_expires_and_the_audit_says_so() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("condition", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        world.overdue(alice).await;
        world.overdue(bob).await;
        // It stands still between choosing and expiring; a payment comes in between.
        let broken = world.process("reconcile", "expiry_condition=return;F27=1*sleep(3000)", &[]);
        broken.until_metric("seckill_p6_fulfil_leads", |leads| leads >= 1.0).await;
        admin.pay(alice, "in-between").await;
        eventually("both expired", async || world.rows("orders", "state = 'EXPIRED'").await == 2).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent() && audit.counted.life.payments_unmatched == 1, "{audit:#?}");
        broken.kill();
        world.stop().await;
    });
}

#[test]
fn a_grant_that_redis_takes_twice_shows_in_the_books() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.paying_sale("twice", 10, Some(1), LONG).await;
        let alice = world.ordered(&sale, "alice").await;
        world.overdue(alice).await;
        let broken = world.process("reconcile", "grant_once=return", &[]);
        eventually("expired", async || world.order_in("EXPIRED", alice).await).await;
        eventually("given twice", async || world.servers.redis.stock.units(&sale, 0).await.unwrap() == Some(11)).await;
        let audit = world.audit(&sale, Window::Now).await;
        assert!(!audit.consistent(), "{audit:#?}");
        broken.kill();
        world.stop().await;
    });
}
