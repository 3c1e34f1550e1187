//! Closed sales that were consistent, with nothing left in Redis: rounds leave them out until something is written for them.

use super::rebuild_and_grants::QUICK;
use crate::support::basics::time::eventually;
use crate::support::world::{World, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

/// Runs of the sale on record. A sale that is audited in each round has one more every second.
async fn runs(world: &World, sale: &SaleId) -> i64 {
    world.rows("audit_runs", &format!("sale_id = '{sale}'")).await
}

#[test]
fn a_settled_sale_is_audited_again_when_something_was_written_for_it() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[QUICK, &["p1_entry.token_ttl_s=1"]].concat()).await;
        let (over, live) = (world.sale("a-over", 10, Some(1)).await, world.sale("b-live", 10, Some(1)).await);
        world.bought(&over, "a").await;
        world.bought(&live, "a").await;
        assert!(world.settled(&over).await.consistent() && world.settled(&live).await.consistent());
        world.stop_roles().await;
        world.cli(&["sale", "close", "a-over"]).exits(0);
        let leader = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
        let meta = world.servers.redis.keys.meta(0, &over);
        eventually("gone from redis", async || world.redis(&["EXISTS", &meta]).await.as_u64() == Some(0)).await;
        // The other sale is audited on; this one is not.
        let mut at = (runs(&world, &over).await, runs(&world, &live).await);
        eventually("it is left out", async || {
            let now = (runs(&world, &over).await, runs(&world, &live).await);
            if now.0 != at.0 {
                at = now;
            }
            now.1 >= at.1 + 3
        })
        .await;
        world
            .sql("INSERT INTO stock_flow (sale_id, delta, kind, ref) VALUES ('a-over', 1, 'correction', 'by hand')")
            .await;
        eventually("a finding", async || {
            world.rows("audit_findings", "code = 'UNBALANCED' AND sale_id = 'a-over'").await > 0
        })
        .await;
        leader.stop().await;
    });
}
