//! Units added or sold again reach Redis once, database first, through the command line (E8).

use crate::support::world::{World, eventually, run};
use seckill::domain::ids::SaleId;
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use seckill::sales::rows::grants::Reclaimed;

async fn stock(world: &World, sale: &SaleId) -> i64 {
    world.servers.redis.stock.units(sale, 0).await.unwrap().unwrap()
}

async fn unapplied(world: &World) -> i64 {
    world.rows("stock_grants", "applied_at IS NULL").await
}

#[test]
fn a_grant_cut_off_before_redis_is_finished_once_by_a_repeat_or_by_p5() {
    run(async {
        let world = World::with(&[Reconcile], &["p5_reconcile.interval_ms=100"]).await;
        let sale = world.sale("cut-off", 10, None).await;
        // The state that a death between the two servers leaves.
        assert!(world.servers.rows.grants.top_up(&sale, "more", 5).await.unwrap());
        eventually("p5 finished it", async || unapplied(&world).await == 0).await;
        assert_eq!(stock(&world, &sale).await, 15);
        for _ in 0..2 {
            world.cli(&["sale", "top-up", "cut-off", "5", "--grant", "more"]).exits(0);
        }
        let other = world.cli(&["sale", "top-up", "cut-off", "6", "--grant", "more"]).exits(1);
        assert!(other.err.contains("more"), "the same name for other units is refused: {other:?}");
        assert_eq!((stock(&world, &sale).await, world.rows("stock_grants", "TRUE").await), (15, 2));
        // Marked as given although a crash forgot: given again, to no effect.
        world.sql("UPDATE stock_grants SET applied_at = NULL").await;
        eventually("p5 finished them again", async || unapplied(&world).await == 0).await;
        assert_eq!(stock(&world, &sale).await, 15);
        world.finish().await;
    });
}

#[test]
fn a_grant_that_redis_refused_stays_on_record_and_is_given_by_the_repeat() {
    run(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("refused", 10, None).await;
        let keys = &world.servers.redis.keys;
        let (meta, away) = (keys.meta(0, &sale), format!("{}-away", keys.meta(0, &sale)));
        world.redis(&["RENAME", &meta, &away]).await;
        let said = world.cli(&["sale", "top-up", "refused", "7", "--grant", "late"]).exits(1);
        assert!(said.err.contains("lost keys"), "{said:?}");
        assert_eq!((world.number("SELECT granted AS n FROM sales").await, stock(&world, &sale).await), (17, 10));
        world.redis(&["RENAME", &away, &meta]).await;
        world.cli(&["sale", "top-up", "refused", "7", "--grant", "late"]).exits(0);
        assert_eq!((world.number("SELECT granted AS n FROM sales").await, stock(&world, &sale).await), (17, 17));
        assert_eq!(world.rows("stock_flow", "kind = 'grant'").await, 2, "one journal row a grant (D9)");
        world.finish().await;
    });
}

#[test]
fn a_sold_out_sale_opens_again_and_failed_units_are_sold_again_once() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("opens", 3, Some(1)).await;
        let (alice, bob) = (world.bought(&sale, "alice").await, world.bought(&sale, "bob").await);
        world.bought(&sale, "carol").await;
        for _ in 0..3 {
            assert_eq!(world.buy(&sale, "late", 1, None).await.status, 410, "sold out, also by the local mark");
        }
        world.cli(&["sale", "top-up", "opens", "1"]).exits(0);
        eventually("it sells again", async || world.buy(&sale, "late", 1, None).await.status == 202).await;
        eventually("and is sold out again", async || world.buy(&sale, "later", 1, None).await.status == 410).await;

        // Two requests that can never be orders: their units come back by an operator's word only, and once.
        for (user, id) in [("alice", alice), ("bob", bob)] {
            eventually("an order", async || world.status_of(&sale, user, id).await.0 == "CONFIRMED").await;
        }
        world.cli(&["sale", "top-up", "opens", "2", "--grant", "second"]).exits(0);
        let mut failed = Vec::new();
        for (n, user) in ["dan", "erin"].into_iter().enumerate() {
            // Only the database knows of it.
            world.foreign_order(&sale, user, 7 + n as u64).await;
            eventually("it sells again", async || {
                let answer = world.buy(&sale, user, 1, None).await;
                failed.extend((answer.status == 202).then(|| (user, answer.text("request_id"))));
                answer.status == 202
            })
            .await;
        }
        for (user, id) in &failed {
            let id = seckill::domain::ids::RequestId::parse(id).unwrap();
            eventually("a failure", async || world.status_of(&sale, user, id).await.0 == "FAILED").await;
        }
        assert_eq!(stock(&world, &sale).await, 0, "nothing comes back by itself");
        let said = world.cli(&["sale", "reclaim", "opens"]).exits(0);
        assert!(said.out.contains("2 failed requests"), "{said:?}");
        let (one, two) = tokio::join!(world.warmer_reclaim(&sale), world.warmer_reclaim(&sale));
        assert_eq!((one, two), (None, None));
        assert_eq!(stock(&world, &sale).await, 2);
        world.finish().await;
    });
}

impl World {
    async fn warmer_reclaim(&self, sale: &SaleId) -> Option<Reclaimed> {
        self.sale_control().reclaim(sale).await.expect("a reclaim")
    }
}
