//! Redis without memory (window 8). Buyers get 503 and nothing is half done; what was accepted goes on to the database; an
//! operator can still stop the sale; selling goes on when there is memory again.

use crate::support::basics::resp::RawRedis;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting};
use seckill::domain::sale::MetaState;
use seckill::roles::Role;

#[test]
fn a_full_redis_accepts_nothing_and_what_it_has_is_persisted() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let for_long = ["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"];
        let world = World::on_breakable(&servers, "full", &[Role::Api], &for_long).await;
        let sale = world.sale("full", 100, None).await;
        let mut ids = Vec::new();
        for buyer in 0..20 {
            let answer = world.buy(&sale, &format!("buyer-{buyer}"), 1, None).await;
            assert_eq!(answer.status, 202, "{answer:?}");
            ids.push(answer.text("request_id"));
        }
        let (token, request_id) = world.token(&sale, "late").await;
        let (winner, _) = world.token(&sale, "winner").await;
        assert_eq!(world.buy(&sale, "winner", 1, Some(&winner)).await.status, 202);
        let (mut redis, keys) = (RawRedis::of(&world).await, world.servers.redis.keys.clone());
        let of_sale =
            [keys.meta(0, &sale), keys.stock(0, &sale), keys.buyers(0, &sale), keys.ledger(0, &sale), keys.outbox(0)];
        let mut before = Vec::new();
        for key in &of_sale {
            before.push(redis.call(&["DUMP", key]).await);
        }

        redis.call(&["CONFIG", "SET", "maxmemory", "1"]).await;
        for _ in 0..3 {
            let refused = world.buy(&sale, "late", 1, Some(&token)).await;
            assert_eq!((refused.status, refused.code().as_str()), (503, "UNAVAILABLE"), "{refused:?}");
        }
        let again = world.buy(&sale, "winner", 1, Some(&winner)).await;
        assert_eq!(again.status, 202, "who was accepted before gets it again: {again:?}");
        for (key, before) in of_sale.iter().zip(&before) {
            assert_eq!(redis.call(&["DUMP", key]).await, *before, "{key}: nothing is half done");
        }

        // Everything that only moves or shrinks goes on: relay, consumer, settling, stopping the sale.
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        for (buyer, id) in ids.iter().enumerate() {
            let status = world.status(&sale, &format!("buyer-{buyer}"), id, 20).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        }
        eventually("the outbox drains", async || world.outbox().await == (0, 0)).await;
        eventually("the ledger is settled", async || {
            redis.hash(&keys.ledger(0, &sale)).await.values().filter(|record| record.starts_with('C')).count() == 21
        })
        .await;
        world.sale_control().pause(&sale).await.expect("a sale can be stopped");
        assert_eq!(world.servers.redis.sale_keys.meta(&sale, 0).await.unwrap().unwrap().state, MetaState::Paused);
        world.sale_control().resume(&sale).await.expect("and resumed");
        assert_eq!(world.buy(&sale, "late", 1, Some(&token)).await.status, 503, "still full");

        redis.call(&["CONFIG", "SET", "maxmemory", "0"]).await;
        eventually("selling goes on", async || {
            let again = world.buy(&sale, "late", 1, Some(&token)).await;
            again.status == 202 && again.text("request_id") == request_id
        })
        .await;
        let again = world.buy(&sale, "winner", 1, Some(&winner)).await;
        assert_eq!(again.status, 202, "{again:?}");
        assert_eq!(world.settled(&sale).await.counted.ordered, 22);
        rest.stop().await;
        world.finish().await;
    });
}
