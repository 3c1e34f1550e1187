//! A replay that is killed in the middle (window 89) loses nothing and is done by the next one.

use crate::support::world::{World, eventually, run};
use seckill::roles::Role::Api;
use seckill::store::rabbit::declare;

#[test]
fn a_replay_killed_in_the_middle_is_finished_by_the_next_one() {
    run(async {
        let world = World::with(&[Api], &[]).await;
        let sale = world.sale("killed", 100, Some(1)).await;
        declare(&world.servers.rabbit).await.unwrap();
        let mut ids = Vec::new();
        for n in 0..4 {
            ids.push((format!("relay-{n}"), world.bought(&sale, &format!("relay-{n}")).await));
        }
        world.park_the_outbox().await;
        for n in 0..4 {
            let (user, id) = (format!("mq-{n}"), world.bought(&sale, &format!("mq-{n}")).await);
            world.park_request_in_mq(&sale, id).await;
            ids.push((user, id));
        }
        world.lose_the_outbox().await;

        // Dies with the sixth request persisted: nothing is reported, audited or removed of its batch.
        let said = world.cli_with_faults("F22=5*off->return", &["dlq", "replay", "--all"]);
        assert_eq!(said.code, None, "killed: {said:?}");
        assert_eq!((world.orders(&sale).await, world.rows("operator_acts", "action = 'dlq.replay'").await), (6, 0));
        assert_eq!(world.servers.redis.relay_dlq.count(0).await.unwrap(), 4, "the entries are where they were");
        eventually("the broker has its messages back", async || world.mq_dlq().await.len() == 4).await;

        // And once more, later; then to the end.
        let said = world.cli_with_faults("F22=1*off->return", &["dlq", "replay", "--all"]);
        assert_eq!((said.code, world.orders(&sale).await), (None, 8), "{said:?}");
        eventually("the broker has its messages back", async || world.mq_dlq().await.len() == 4).await;
        world.cli(&["dlq", "replay", "--all"]).exits(0);
        assert_eq!(world.orders(&sale).await, 8, "each exactly once");
        assert!(world.mq_dlq().await.is_empty());
        assert_eq!(world.servers.redis.relay_dlq.count(0).await.unwrap(), 0);
        for (user, id) in &ids {
            assert_eq!(world.status_of(&sale, user, *id).await.0, "CONFIRMED");
            assert_eq!(world.rows("operator_acts", &format!("target_id = '{id}'")).await, 1);
        }
        world.finish().await;
    });
}
