//! Losers of numbers that Redis gave twice: a rebuild loads all of them, so that a repeat finds its answer.

use super::rebuild_and_grants::{QUICK, lose_the_keys, rebuilt};
use crate::support::world::{World, run};
use seckill::roles::Role::{Api, Consumer, Reconcile, Relay};
use std::fmt::Write as _;

/// More than one page of them.
const LOSERS: u64 = 2_300;

#[test]
fn every_loser_of_a_number_given_twice_is_loaded_by_a_rebuild() {
    run(async {
        let mut world = World::with(&[Api, Relay, Consumer], QUICK).await;
        let sale = world.sale("losers", 10, Some(1)).await;
        world.bought(&sale, "winner").await;
        assert!(world.settled(&sale).await.consistent());
        let (mut outcomes, mut register) = (String::new(), String::new());
        for id in 1..=LOSERS {
            let comma = if id == 1 { "" } else { ", " };
            write!(outcomes, "{comma}({id}, 'FAILED', 'NUMBER_REUSED', 'losers', 0, 1, NULL, REPEAT('x', 16))")
                .unwrap();
            write!(
                register,
                "{comma}({id}, 'losers', 'buyer-{id}', 1, 'audit', 'NUMBER_REUSED', '', 'failed_final', NOW(3), 'test')"
            )
            .unwrap();
        }
        world
            .sql(&format!(
                "INSERT INTO request_outcome (request_id, kind, reason, sale_id, shard, epoch, number, payload_hash) \
                 VALUES {outcomes};\
                 INSERT INTO failed_request (request_id, sale_id, user_id, quantity, source, reason, payload, status, \
                 resolved_at, resolved_by) VALUES {register};"
            ))
            .await;
        lose_the_keys(&world, &sale).await;
        world.start_roles(&[Reconcile]).await;
        rebuilt(&world, &sale, 1).await;
        let ledger = world.servers.redis.keys.ledger(0, &sale);
        // The winner's record and the empty field that marks the hash as created.
        assert_eq!(world.redis(&["HLEN", &ledger]).await.as_u64(), Some(LOSERS + 2));
        world.finish().await;
    });
}
