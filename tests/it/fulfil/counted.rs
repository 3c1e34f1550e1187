//! Orders that wait for their payment are counted where they are written (P6-F0), each once.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::message;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::rabbit::declare;

const UNPAID: &str = r#"seckill_state_total{phase="p6_fulfil",code="P6-F0"}"#;
const REPEATED: &str = r#"seckill_state_total{phase="p4_persist",code="P4-C1"}"#;

#[test]
fn each_new_order_that_waits_for_its_payment_is_counted_once() {
    run(async {
        let world = World::with(&[Api, Relay], &[]).await;
        declare(&world.servers.rabbit).await.unwrap();
        let (paying, plain) =
            (world.paying_sale("counted", 10, Some(1), LONG).await, world.sale("plain", 10, Some(1)).await);
        let (alice, bob) = (world.bought(&paying, "alice").await, world.bought(&paying, "bob").await);
        let carol = world.bought(&plain, "carol").await;
        let accepted = world.accepted(&paying, alice).await;
        let consumer = world.process("consumer", "", &[]);
        for (sale, user, id) in [(&paying, "alice", alice), (&paying, "bob", bob), (&plain, "carol", carol)] {
            eventually("an order", async || world.status_of(sale, user, id).await.0 == "CONFIRMED").await;
        }
        consumer.until_metric(UNPAID, |count| count == 2.0).await;
        // Its message comes once more.
        world.publish(&[message::encode(&accepted).into_bytes()]).await;
        consumer.until_metric(REPEATED, |count| count >= 1.0).await;
        assert_eq!(consumer.metric(UNPAID).await, Some(2.0), "a repeat is no new order");
        consumer.kill();
        let rest = world.extra_roles(&[Consumer], |_| {});
        eventually("no message left", async || world.waiting_in("seckill.").await == 0).await;
        rest.stop().await;
        world.finish().await;
    });
}
