//! Group A: single success, duplicates stopped, concurrent buyers never oversell (P1 + P2, no faults).

use super::world::{World, run};

#[test]
fn one_purchase_becomes_one_order() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("one", 10, Some(1)).await;
        let accepted = world.buy(&sale, "alice", 1, None).await;
        assert_eq!((accepted.status, accepted.code().as_str()), (202, "P2-R0"), "{accepted:?}");
        let request_id = accepted.text("request_id");
        assert_eq!(accepted.header("location"), format!("/v1/sales/one/orders/{request_id}"));
        let status = world.status(&sale, "alice", &request_id, 10).await;
        assert_eq!((status.status, status.text("status").as_str()), (200, "CONFIRMED"), "{status:?}");
        let audit = world.settled(&sale).await;
        assert_eq!((audit.counted.ordered, audit.counted.database_stock, audit.counted.redis_stock), (1, 9, 9));
        world.finish().await;
    });
}
