//! A buyer asks for an order, or cancels it, before it is written.

use crate::support::basics::answer::Answer;
use crate::support::buyers::orders::LONG;
use crate::support::world::{World, eventually, run};
use seckill::domain::ids::RequestId;
use seckill::roles::Role;

fn refusal(answer: &Answer) -> (u16, String) {
    (answer.status, answer.code())
}

#[test]
fn a_queued_purchase_is_no_order_yet_for_its_buyer_and_none_for_others() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let sale = world.paying_sale("queued", 5, None, LONG).await;
        let id = world.bought(&sale, "alice").await;
        for answer in [world.my_order("alice", id).await, world.cancel_mine("alice", id).await] {
            assert_eq!(refusal(&answer), (409, "ORDER_QUEUED".to_owned()), "{answer:?}");
            assert_eq!(answer.text("request_id"), id.to_string(), "{answer:?}");
            assert!(answer.body.contains(&format!("/v1/sales/queued/orders/{id}")), "it says where to ask: {answer:?}");
        }
        let unknown = RequestId::new(id.get() + 1).unwrap();
        for (user, id) in [("bob", id), ("alice", unknown), ("alice", RequestId::new(1).unwrap())] {
            for answer in [world.my_order(user, id).await, world.cancel_mine(user, id).await] {
                assert_eq!(refusal(&answer), (404, "ORDER_NOT_FOUND".to_owned()), "{user} {id}: {answer:?}");
            }
        }
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        eventually("the order", async || world.my_order("alice", id).await.status == 200).await;
        assert_eq!(world.cancel_mine("alice", id).await.text("state"), "CANCELLED");
        rest.stop().await;
        world.finish().await;
    });
}
