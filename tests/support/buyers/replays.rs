//! Purchases that are repeated with the same token.

use crate::support::world::{Answer, World};
use seckill::domain::ids::SaleId;

/// Buys with the same token again; everything a buyer can see must be as the first time.
pub async fn same(world: &World, sale: &SaleId, token: &str, first: &Answer, when: &str) {
    for _ in 0..2 {
        let again = world.buy(sale, "alice", 1, Some(token)).await;
        assert_eq!((again.status, &again.body), (202, &first.body), "{when}: {again:?}");
        assert_eq!(again.header("location"), first.header("location"), "{when}");
        assert_eq!(again.header("content-type"), first.header("content-type"), "{when}");
    }
}

/// Buys with a new token: the token, and the answer.
pub async fn first(world: &World, sale: &SaleId) -> (String, Answer) {
    let (token, request_id) = world.token(sale, "alice").await;
    let first = world.buy(sale, "alice", 1, Some(&token)).await;
    assert_eq!((first.status, first.text("request_id")), (202, request_id), "{first:?}");
    (token, first)
}
