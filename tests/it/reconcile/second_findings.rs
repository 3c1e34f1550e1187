//! A finding that stands hides no other of its kind: each is confirmed, logged, counted and written down by itself.

use super::growth::{forgotten, lose};
use crate::support::processes::killable::KillableProcess;
use crate::support::world::{World, eventually, run};
use seckill::roles::Role::{Api, Consumer, Relay};

fn logged(reconciler: &KillableProcess, text: &str) -> usize {
    reconciler.program.stderr().lines().filter(|line| line.contains("finding") && line.contains(text)).count()
}

#[test]
fn a_second_gap_and_a_second_equation_are_reported_while_the_first_ones_stand() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], &[]).await;
        let sale = world.sale("second", 100, Some(1)).await;
        for user in 0..12 {
            world.bought(&sale, &format!("u{user}")).await;
        }
        assert!(world.settled(&sale).await.consistent());
        forgotten(&world, &sale).await;
        world.stop_roles().await;
        let reconciler = world.busy_reconciler(&[]);

        lose(&world, &sale, 3).await;
        eventually("the first gap", async || reconciler.p5_state("P5-RC4").await == 1.0).await;
        lose(&world, &sale, 8).await;
        eventually("the second gap", async || reconciler.p5_state("P5-RC4").await == 2.0).await;
        assert_eq!([logged(&reconciler, "number 3 has"), logged(&reconciler, "number 8 has")], [1, 1]);
        let both = "code = 'P5-RC4' AND detail LIKE '%number 8 %' AND run_id IN \
            (SELECT run_id FROM audit_findings WHERE code = 'P5-RC4' AND detail LIKE '%number 3 %')";
        eventually("a row with both", async || world.rows("audit_findings", both).await > 0).await;

        // Two equations, one after the other.
        let row = |delta: &str| {
            format!(
                "INSERT INTO stock_flow (sale_id, delta, kind, ref) VALUES ('second', {delta}, 'correction', 'wrong')"
            )
        };
        world.sql(&row("4")).await;
        let journal = "database stock = sum of stock_flow";
        eventually("the journal", async || logged(&reconciler, journal) == 1).await;
        let redis = "granted to redis = redis remaining";
        let stock = world.servers.redis.keys.stock(0, &sale);
        world.redis(&["INCRBY", &stock, "6"]).await;
        eventually("Redis' own sum", async || logged(&reconciler, redis) == 1).await;
        assert_eq!(logged(&reconciler, journal), 1, "it stands, and is no news");
        drop(reconciler);
        world.redis(&["INCRBY", &stock, "-6"]).await;
        world.sql("DELETE FROM stock_flow WHERE ref = 'wrong'").await;
        for number in [3, 8] {
            let numbers = format!("1:0:{number}-{number}");
            world.cli(&["finding", "close", "second", "--gap", &numbers, "--reason", "refunded by the shop"]).exits(0);
        }
        world.finish().await;
    });
}
