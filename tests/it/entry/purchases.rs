//! Single purchases under the three policies (P1 + P2, no faults).

use crate::support::world::{World, eventually, run};

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

#[test]
fn a_second_purchase_of_a_one_per_user_sale_is_refused_with_the_id_of_the_first() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("once", 10, Some(1)).await;
        let first = world.buy(&sale, "alice", 1, None).await;
        assert_eq!(first.status, 202, "{first:?}");
        for _ in 0..2 {
            let second = world.buy(&sale, "alice", 1, None).await;
            assert_eq!((second.status, second.code().as_str()), (409, "P2-R1"), "{second:?}");
            assert_eq!(second.text("request_id"), first.text("request_id"));
            assert_eq!(second.header("location"), first.header("location"));
        }
        let two = world.buy(&sale, "bob", 2, None).await;
        assert_eq!((two.status, two.code().as_str()), (409, "P2-R5"), "two units at once: {two:?}");
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202, "the refusal took nothing from bob");
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.finish().await;
    });
}

#[test]
fn the_cumulative_limit_is_exact_to_the_unit() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("five", 100, Some(5)).await;
        for (quantity, status) in [(2, 202), (4, 409), (1, 202), (3, 409), (2, 202), (1, 409), (6, 409)] {
            let answer = world.buy(&sale, "alice", quantity, None).await;
            assert_eq!(answer.status, status, "{quantity} more: {answer:?}");
            if status == 409 {
                assert_eq!(answer.code(), "P2-R5", "{answer:?}");
                assert!(answer.text("detail").contains("the limit is 5"), "{answer:?}");
            }
        }
        assert_eq!(world.buy(&sale, "bob", 5, None).await.status, 202, "everyone has a limit of their own");
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.redis_stock, counted.database_stock), (10, 90, 90));
        world.finish().await;
    });
}

#[test]
fn an_unlimited_sale_takes_any_quantities_of_one_buyer() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("many", 1_500, None).await;
        for quantity in [1, 1000, 7, 1, 491] {
            let answer = world.buy(&sale, "alice", quantity, None).await;
            assert_eq!(answer.status, 202, "{quantity}: {answer:?}");
        }
        let last = world.buy(&sale, "alice", 1, None).await;
        assert!(last.is_sold_out(), "{last:?}");
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.ordered, counted.redis_stock, counted.accepted_failed), (1_500, 0, 0));
        world.finish().await;
    });
}

#[test]
fn wanting_more_than_is_left_is_no_sell_out() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("three", 3, None).await;
        let five = world.buy(&sale, "alice", 5, None).await;
        assert_eq!((five.status, five.code().as_str()), (409, "P2-R7"), "{five:?}");
        assert_eq!(five.json["remaining"], 3, "{five:?}");
        let mark = world.servers.redis.sale_cache.get(&sale).await.unwrap().sold_out;
        assert_eq!(mark, None, "not enough for one is not sold out for all");
        assert_eq!(world.buy(&sale, "bob", 3, None).await.status, 202);
        let gone = world.buy(&sale, "carol", 1, None).await;
        assert!(gone.is_sold_out(), "{gone:?}");
        for _ in 0..3 {
            let local = world.buy(&sale, "dave", 1, None).await;
            assert_eq!((local.status, local.code().as_str()), (410, "P1-S2"), "{local:?}");
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 3);
        world.finish().await;
    });
}

#[test]
fn a_full_outbox_refuses_and_takes_nothing() {
    run(async {
        // No process relays, so every accepted request stays in the outbox.
        let world = World::with(&[seckill::roles::Role::Api], &["p1_entry.backlog_max=3"]).await;
        let sale = world.sale("backlog", 10, Some(1)).await;
        for user in ["a", "b", "c"] {
            assert_eq!(world.buy(&sale, user, 1, None).await.status, 202);
        }
        let full = world.buy(&sale, "d", 1, None).await;
        assert_eq!((full.status, full.code().as_str()), (503, "P1-S8"), "{full:?}");
        assert!(!full.header("retry-after").is_empty(), "{full:?}");
        assert_eq!(world.servers.redis.stock.units(&sale, 0).await.unwrap(), Some(7));
        // The entry may be closed by now, but for a trickle.
        eventually("who has bought sees it", async || {
            let again = world.buy(&sale, "a", 1, None).await;
            assert!(matches!(again.code().as_str(), "P2-R1" | "P1-S8"), "{again:?}");
            again.code() == "P2-R1"
        })
        .await;
        world.stop().await;
    });
}
