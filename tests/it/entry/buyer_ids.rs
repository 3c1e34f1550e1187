//! Buyers are distinguished byte by byte, from the access token to the row of the order.

use crate::support::basics::resp::RawRedis;
use crate::support::world::{World, run};
use seckill::domain::ids::RequestId;
use std::collections::HashSet;

/// Different buyers that a folding, trimming, normalising or badly quoting layer would mix up or lose.
const BUYERS: [&str; 26] = [
    "alice",
    "Alice",
    "ALICE",
    "alice ",
    " alice",
    "alice  ",
    "al ice",
    "é",
    "e\u{301}",
    "ﬁ",
    "fi",
    "ß",
    "ss",
    "１",
    "1",
    "o'brien",
    "o''brien",
    "\"quoted\"",
    "back\\slash",
    "back\\\\slash",
    "100%",
    "%41",
    "A",
    "👩‍👩‍👧",
    "'; DROP TABLE orders; --",
    "{\"user\":\"x\"} Q 1 1 1 1 - y",
];

#[test]
fn every_spelling_is_a_buyer_of_its_own() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("ids", 100, Some(1)).await;
        let mut first = Vec::new();
        for user in BUYERS {
            let (token, id) = world.token(&sale, user).await;
            let answer = world.buy(&sale, user, 1, Some(&token)).await;
            assert_eq!((answer.status, &answer.text("request_id")), (202, &id), "{user:?}: {answer:?}");
            first.push(id);
        }
        for (user, id) in BUYERS.iter().zip(&first) {
            let again = world.buy(&sale, user, 1, None).await;
            assert_eq!((again.status, &again.text("request_id")), (409, id), "{user:?} has bought: {again:?}");
        }
        assert_eq!(first.iter().collect::<HashSet<_>>().len(), BUYERS.len());
        for (user, id) in BUYERS.iter().zip(&first) {
            let status = world.status(&sale, user, id, 20).await;
            assert_eq!(status.text("status"), "CONFIRMED", "{user:?}: {status:?}");
            let story = world.servers.rows.requests.records_of(RequestId::parse(id).unwrap()).await.unwrap();
            assert_eq!(story.order.expect("an order").user_id.as_str().as_bytes(), user.as_bytes());
        }
        for (user, id) in BUYERS.iter().zip(&first) {
            for other in BUYERS.iter().filter(|other| *other != user) {
                assert_eq!(world.status(&sale, other, id, 0).await.status, 404, "{other:?} is not {user:?}");
            }
        }
        let buyers = RawRedis::of(&world).await.hash(&world.servers.redis.keys.buyers(0, &sale)).await;
        let expected: HashSet<&str> = BUYERS.into_iter().chain([""]).collect();
        assert_eq!(buyers.keys().map(String::as_str).collect::<HashSet<_>>(), expected);
        let counted = world.settled(&sale).await.counted;
        assert_eq!(counted.ordered, i64::try_from(BUYERS.len()).unwrap());
        world.finish().await;
    });
}

#[test]
fn sales_whose_ids_differ_by_case_are_two_sales() {
    run(async {
        let world = World::start().await;
        let (lower, upper) = (world.sale("sale_x-1", 1, Some(1)).await, world.sale("SALE_X-1", 2, Some(1)).await);
        assert_eq!(world.buy(&lower, "alice", 1, None).await.status, 202);
        assert_eq!(world.buy(&lower, "bob", 1, None).await.status, 410);
        assert_eq!(world.buy(&upper, "alice", 1, None).await.status, 202);
        assert_eq!(world.buy(&upper, "bob", 1, None).await.status, 202);
        assert_eq!(world.settled(&lower).await.counted.ordered, 1);
        assert_eq!(world.settled(&upper).await.counted.ordered, 2);
        world.finish().await;
    });
}
