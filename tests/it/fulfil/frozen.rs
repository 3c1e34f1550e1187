//! Cancellations wait while their sale is being rebuilt, as the sweep does: each of them would make the rebuild begin again.

use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::sale::MetaState;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use serde_json::json;

const QUICK: &[&str] = &["p5_reconcile.interval_ms=100", "p5_reconcile.quiet_ms=100"];

#[test]
fn cancellations_wait_while_their_sale_is_being_rebuilt_and_for_nothing_else() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let admin = world.admin_port();
        let sale = world.paying_sale("frozen", 10, Some(1), LONG).await;
        let (alice, bob) = (world.ordered(&sale, "alice").await, world.ordered(&sale, "bob").await);
        let (carol, dave) = (world.ordered(&sale, "carol").await, world.ordered(&sale, "dave").await);
        assert_eq!(world.cancel_mine("carol", carol).await.status, 200);
        world.settled(&sale).await;
        world.cli(&["sale", "rebuild", "frozen"]).exits(0);

        let path = format!("/orders/{bob}/cancel");
        let answers =
            [world.cancel_mine("alice", alice).await, admin.post(&path, json!({ "reason": "out of stock" })).await];
        for refused in answers {
            assert_eq!((refused.status, refused.code()), (503, "UNAVAILABLE".to_owned()), "{refused:?}");
            assert!(refused.retry_after_s() > 0, "{refused:?}");
        }
        let said = world.cli(&["order", "cancel", &bob.to_string(), "--reason", "out of stock"]).exits(1).err;
        assert!(said.contains("try again"), "{said}");
        let refused = "action = 'order.cancel' AND outcome = 'failed' AND code = 'FROZEN' AND sale_id = 'frozen'";
        assert_eq!(world.rows("operator_acts", refused).await, 2, "of operators, each on record");
        assert!(world.order_in("UNPAID", alice).await && world.order_in("UNPAID", bob).await);
        assert_eq!(world.cancel_mine("carol", carol).await.status, 200, "a repeat changes nothing");
        assert_eq!(world.cancel_mine("bob", alice).await.status, 404, "another's order is not there");
        assert_eq!(admin.pay(bob, "pi_1").await.code(), "P6-F1", "payments bring no unit back");

        let rebuilds = world.extra_roles(&[Reconcile], |_| {});
        eventually("rebuilt", async || {
            let meta = world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap();
            meta.is_some_and(|meta| meta.epoch > 1 && meta.state == MetaState::Open)
        })
        .await;
        rebuilds.stop().await;
        assert_eq!(world.cancel_mine("alice", alice).await.text("state"), "CANCELLED");
        assert_eq!(admin.post(&path, json!({ "reason": "out of stock" })).await.status, 200);
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(9), "all but dave's");

        // A sale that was closed while Redis had it frozen, and could not be changed there, is never rebuilt: nothing waits for that.
        world.cli(&["sale", "close", "frozen"]).exits(0);
        let keys = &world.servers.redis.sale_keys;
        keys.set_state(&sale, 0, MetaState::Frozen, &[MetaState::Closed]).await.unwrap();
        assert_eq!(world.cancel_mine("dave", dave).await.text("state"), "CANCELLED");
        keys.set_state(&sale, 0, MetaState::Closed, &[MetaState::Frozen]).await.unwrap();
        world.finish().await;
    });
}
