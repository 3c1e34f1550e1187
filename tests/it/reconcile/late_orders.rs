//! Orders of requests that a rebuilt ledger does not have: their messages came after the rebuild.

use super::rebuild_and_grants::{QUICK, lose_the_keys, rebuilt};
use crate::support::world::audits::lose_the_outbox;
use crate::support::world::outbox_kinds::bodies;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn the_buyer_of_an_order_that_came_after_a_rebuild_is_not_sent_away() {
    run(async {
        let mut world = World::with(&[Api], QUICK).await;
        let sale = world.sale("late", 10, Some(1)).await;
        let alice = world.bought(&sale, "alice").await;
        let held = bodies(&world).await;
        // A relay has it in hand and sleeps; Redis forgets everything else.
        lose_the_outbox(&world).await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Relay, Consumer, Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        world.publish(&held).await;
        eventually("the late order", async || world.orders(&sale).await == 1).await;
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "CONFIRMED");
        // No other buyer may see it.
        assert_eq!(world.status(&sale, "mallory", &alice.to_string(), 0).await.status, 404);
        // Its unit is for sale a second time; the database does not sell it, and the audit says so.
        let findings = world.settled(&sale).await.findings;
        assert!(!findings.is_empty());
        world.stop().await;
    });
}
