//! Alerts about the books, which compare Redis with the database: a database that lost what it had decided, and a Redis that has
//! more than the database.

use crate::support::outside::prometheus::Prometheus;
use crate::support::world::{World, eventually, run_waiting};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};

#[test]
fn a_database_that_forgot_an_order_is_paged_and_so_is_a_redis_that_gave_away_too_much() {
    run_waiting(async {
        let world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("books", 3, Some(1)).await;
        let keys = world.servers.redis.keys.clone();
        world.bought(&sale, "bob").await;
        assert!(world.settled(&sale).await.consistent());
        world.back_up().await;
        let alice = world.bought(&sale, "alice").await;
        assert!(world.settled(&sale).await.consistent());
        // The ledger forgets what is settled, so that only the numbers remember.
        let forgets = world.extra_roles(&[Reconcile], |settings| settings.p5_reconcile.ledger_retention_s = 1);
        let ledger = keys.ledger(0, &sale);
        eventually("an empty ledger", async || world.redis(&["HLEN", &ledger]).await.as_u64() == Some(1)).await;
        forgets.stop().await;
        let p5 = world.process("reconcile", "", &["p5_reconcile.interval_ms=300"]);
        let tower = Prometheus::over("alerts-books", &[&p5]).await;

        let gap = tower.before("the database went back to an older backup", &["SeckillGap"]).await;
        world.restore().await;
        gap.fires().await;
        eventually("a row of the register", async || world.rows("failed_request", "reason = 'GAP'").await == 1).await;
        world.cli(&["dlq", "replay", &alice.to_string()]).exits(0);
        gap.resolves().await;
        assert_eq!(world.orders(&sale).await, 2, "it is an order again");

        let refused = ["SeckillRefused", "SeckillUnbalanced"].as_slice();
        let refused = tower.before("units given to redis by hand, and sold", refused).await;
        world.redis(&["INCRBY", &keys.stock(0, &sale), "1"]).await;
        world.redis(&["HINCRBY", &keys.grants(0, &sale), "first", "1"]).await;
        for user in ["carol", "dave"] {
            world.bought(&sale, user).await;
        }
        refused.fires().await;
        world.cli(&["finding", "close", "books", "--refused", "--reason", "refunded, ticket 4711"]).exits(0);
        world.cli(&["sale", "rebuild", "books"]).exits(0);
        refused.resolves().await;
        world.finish().await;
    });
}
