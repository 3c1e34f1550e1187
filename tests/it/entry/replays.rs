//! A purchase token's repeats are one purchase and get the same bytes, whatever has happened since.

use crate::support::buyers::replays::{first, same};
use crate::support::world::{World, eventually, run};

#[test]
fn a_replay_gets_the_same_bytes_after_the_order_the_sell_out_the_pause_and_the_close() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("replay", 2, Some(1)).await;
        let (token, answer) = first(&world, &sale).await;
        same(&world, &sale, &token, &answer, "at once").await;
        let status = world.status(&sale, "alice", &answer.text("request_id"), 20).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
        same(&world, &sale, &token, &answer, "after CONFIRMED").await;
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        assert!(world.buy(&sale, "carol", 1, None).await.is_sold_out());
        assert_eq!(world.buy(&sale, "carol", 1, None).await.code(), "P1-S2");
        same(&world, &sale, &token, &answer, "after sell-out").await;
        world.sale_control().pause(&sale).await.unwrap();
        same(&world, &sale, &token, &answer, "just paused").await;
        eventually("the pause at the entry", async || world.buy(&sale, "dave", 1, None).await.status == 423).await;
        same(&world, &sale, &token, &answer, "while paused").await;
        world.sale_control().close(&sale).await.unwrap();
        eventually("the close at the entry", async || world.buy(&sale, "dave", 1, None).await.status == 410).await;
        same(&world, &sale, &token, &answer, "after the close").await;
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.finish().await;
    });
}

#[test]
fn a_replay_gets_the_same_bytes_from_another_process() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("elsewhere", 1, Some(1)).await;
        let (token, answer) = first(&world, &sale).await;
        let other = world.second_world(&[seckill::roles::Role::Api], &[]).await;
        same(&other, &sale, &token, &answer, "at another process").await;
        other.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_token_with_another_quantity_is_refused_and_takes_nothing() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("quantity", 10, None).await;
        let (token, answer) = first(&world, &sale).await;
        let two = world.buy(&sale, "alice", 2, Some(&token)).await;
        assert_eq!((two.status, two.code().as_str()), (422, "TOKEN_REUSED"), "{two:?}");
        same(&world, &sale, &token, &answer, "after the mix-up").await;
        assert_eq!(world.settled(&sale).await.counted.redis_stock, 9);
        world.finish().await;
    });
}

#[test]
fn fifty_repeats_at_once_take_one_unit() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("fifty", 100, None).await;
        let (token, request_id) = world.token(&sale, "alice").await;
        let repeats = (0..50).map(|_| world.buy(&sale, "alice", 3, Some(&token)));
        let answers = futures::future::join_all(repeats).await;
        for answer in &answers {
            assert_eq!((answer.status, &answer.body), (202, &answers[0].body), "{answer:?}");
            assert_eq!(answer.text("request_id"), request_id);
        }
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.redis_stock, counted.ordered), (97, 3));
        world.finish().await;
    });
}

#[test]
fn a_refused_token_can_win_later() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("later", 1, None).await;
        let (token, request_id) = world.token(&sale, "alice").await;
        assert_eq!(world.buy(&sale, "alice", 2, Some(&token)).await.code(), "P2-R7");
        let won = world.buy(&sale, "alice", 1, Some(&token)).await;
        assert_eq!((won.status, won.text("request_id")), (202, request_id), "a refusal leaves no trace: {won:?}");
        world.finish().await;
    });
}

#[test]
fn without_a_token_every_request_is_another_purchase() {
    run(async {
        let world = World::start().await;
        let sale = world.sale("tokenless", 10, None).await;
        let (one, two) = (world.buy(&sale, "alice", 1, None).await, world.buy(&sale, "alice", 1, None).await);
        assert_ne!(one.text("request_id"), two.text("request_id"));
        let counted = world.settled(&sale).await.counted;
        assert_eq!((counted.redis_stock, counted.ordered), (8, 2));
        world.finish().await;
    });
}
