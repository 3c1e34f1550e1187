//! Redis stands still after the script was sent (B8). It is not known whether it ran; nothing is guessed, nothing is
//! sent twice by the system, and the request id says.

use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting};
use seckill::dev::ServerKind;
use seckill::roles::Role;

#[test]
fn an_answer_that_never_came_is_reported_as_unknown_and_resolved_by_the_request_id() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let set = [
            "redis.command_timeout_ms=400",
            "p2_reserve.deadline_ms=1500",
            "p1_entry.cache_ttl_ms=60000",
            "p1_entry.cache_stale_max_ms=60000",
        ];
        let world = World::on_breakable(&servers, "unknown", &Role::ALL, &set).await;
        let sale = world.sale("unknown", 10, None).await;
        // The sale is cached and the script is loaded.
        assert_eq!(world.buy(&sale, "first", 1, None).await.status, 202);
        let (token, request_id) = world.token(&sale, "alice").await;

        servers.server(ServerKind::Redis).unwrap().pause().unwrap();
        let unknown = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!((unknown.status, unknown.code().as_str()), (504, "OUTCOME_UNKNOWN"), "{unknown:?}");
        assert_eq!(unknown.text("request_id"), request_id, "{unknown:?}");
        assert_eq!(unknown.header("location"), format!("/v1/sales/unknown/orders/{request_id}"));
        assert!(!unknown.header("retry-after").is_empty());
        servers.server(ServerKind::Redis).unwrap().resume().unwrap();

        // The script was in Redis' socket all the time: it runs now, once. The same token asks again, as a client would.
        eventually("the same token is accepted", async || {
            let again = world.buy(&sale, "alice", 1, Some(&token)).await;
            assert!(matches!(again.status, 202 | 503 | 504), "{again:?}");
            again.status == 202 && again.text("request_id") == request_id
        })
        .await;
        let status = world.status(&sale, "alice", &request_id, 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        eventually("the test's own connection", async || world.servers.redis.health.ping().await.is_ok()).await;
        let audit = world.settled(&sale).await;
        assert_eq!((audit.counted.ordered, audit.counted.redis_stock), (2, 8), "one unit, not two: {audit:#?}");

        // Redis that is gone is another matter: nothing was sent, so nothing was bought.
        servers.server(ServerKind::Redis).unwrap().kill().await.unwrap();
        eventually("the entry knows", async || world.buy(&sale, "bob", 1, None).await.status == 503).await;
        servers.server(ServerKind::Redis).unwrap().restart().await.unwrap();
        eventually("selling goes on", async || world.buy(&sale, "carol", 1, None).await.status == 202).await;
        eventually("the test's own connection", async || world.servers.redis.health.ping().await.is_ok()).await;
        world.finish().await;
    });
}
