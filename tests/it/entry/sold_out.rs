//! A sale that is sold out, from the side of those who hold a purchase token: winners get their first answer for as long as
//! their record is kept, and no buyer is refused for good while the ledger cannot say (rows A9, A2).

use crate::support::world::{Answer, World, eventually, run, time_passes};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::domain::sale::MetaState;
use seckill::roles::Role;

/// A sale of one unit with tokens, sold to alice; bob holds a token, too.
async fn sold_out(world: &World, id: &str) -> (SaleId, String, Answer, String) {
    let sale = world.sale_with(id, 1, |sale| sale.token_required = true).await;
    let (winner, _) = world.token(&sale, "alice").await;
    let (holder, _) = world.token(&sale, "bob").await;
    let first = world.buy(&sale, "alice", 1, Some(&winner)).await;
    assert_eq!(first.status, 202, "{first:?}");
    assert!(world.buy(&sale, "bob", 1, Some(&holder)).await.is_sold_out());
    (sale, winner, first, holder)
}

#[test]
fn a_holder_is_refused_a_winner_is_answered_and_a_top_up_sells_to_the_holder() {
    run(async {
        let world = World::start().await;
        let (sale, winner, first, holder) = sold_out(&world, "holders").await;
        for _ in 0..3 {
            let refused = world.buy(&sale, "bob", 1, Some(&holder)).await;
            assert_eq!((refused.status, refused.code().as_str()), (410, "P1-S2"), "{refused:?}");
            let again = world.buy(&sale, "alice", 1, Some(&winner)).await;
            assert_eq!((again.status, &again.body), (202, &first.body));
            let changed = world.buy(&sale, "alice", 2, Some(&winner)).await;
            assert_eq!((changed.status, changed.code().as_str()), (422, "TOKEN_REUSED"), "{changed:?}");
        }
        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        eventually("a unit for the holder", async || world.buy(&sale, "bob", 1, Some(&holder)).await.status == 202)
            .await;
        for (user, token) in [("alice", &winner), ("bob", &holder)] {
            assert_eq!(world.buy(&sale, user, 1, Some(token)).await.status, 202, "{user}");
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 2);
        world.finish().await;
    });
}

/// A rebuild begins with empty keys. What they hold is not what is for sale.
#[test]
fn a_sale_that_is_being_rebuilt_is_not_called_sold_out() {
    run(async {
        let mut world = World::with(&[Role::Api], &["p1_entry.cache_ttl_ms=50"]).await;
        let sale = world.sale("rebuilt", 10, Some(1)).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        let (keys, stock) = (&world.servers.redis.sale_keys, world.servers.redis.keys.stock(0, &sale));
        keys.set_state(&sale, 0, MetaState::Frozen, &[MetaState::Open]).await.unwrap();
        world.redis(&["SET", &stock, "0"]).await;
        eventually("the empty keys were read", async || {
            let answer = world.buy(&sale, "bob", 1, None).await;
            assert_eq!(answer.status, 423, "{answer:?}");
            let shown = world.request(Method::GET, &format!("/v1/sales/{sale}"), "bob");
            Answer::of(shown).await.json["remaining"].is_null()
        })
        .await;
        world.redis(&["SET", &stock, "9"]).await;
        keys.set_state(&sale, 0, MetaState::Open, &[MetaState::Frozen]).await.unwrap();
        assert_eq!(world.buy(&sale, "bob", 1, None).await.status, 202);
        world.stop_roles().await;
        world.start_roles(&Role::ALL).await;
        world.finish().await;
    });
}

#[test]
fn no_buyer_is_refused_for_good_while_the_ledger_cannot_say() {
    run(async {
        // The sale's view stays as it is: the mark holds while the keys are lost.
        let world =
            World::with(&[Role::Api], &["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"]).await;
        let keys = world.servers.redis.keys.clone();
        let (frozen, winner, first, holder) = sold_out(&world, "frozen").await;
        let states = [MetaState::Open];
        world.servers.redis.sale_keys.set_state(&frozen, 0, MetaState::Frozen, &states).await.unwrap();
        eventually("it may not be sold out", async || {
            let answer = world.buy(&frozen, "bob", 1, Some(&holder)).await;
            assert!([410, 423].contains(&answer.status), "{answer:?}");
            answer.status == 423
        })
        .await;
        let again = world.buy(&frozen, "alice", 1, Some(&winner)).await;
        assert_eq!((again.status, again.body), (202, first.body), "its record is there");

        for lost in ["meta", "ledger"] {
            let (sale, winner, _, _) = sold_out(&world, &format!("lost-{lost}")).await;
            let key = if lost == "meta" { keys.meta(0, &sale) } else { keys.ledger(0, &sale) };
            // All that shows the winner is gone with the ledger, or cannot be trusted without the meta.
            world.redis(&["DEL", &keys.ledger(0, &sale), &key]).await;
            eventually("closed until it was checked", async || {
                let answer = world.buy(&sale, "alice", 1, Some(&winner)).await;
                assert!([410, 423].contains(&answer.status), "{lost}: {answer:?}");
                answer.status == 423
            })
            .await;
        }
        world.stop().await;
    });
}

#[test]
fn a_process_that_missed_a_top_up_answers_the_winner_of_its_unit() {
    run(async {
        // The view stays as it is, as that of a process which does not reach Redis for a while.
        let world =
            World::with(&[Role::Api], &["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"]).await;
        let (sale, _, _, _) = sold_out(&world, "missed").await;
        // Longer than any allowance for clocks: the winner's token is much younger than the mark.
        time_passes(2_500).await;
        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        let other = world.second_world(&[Role::Api], &["p1_entry.cache_ttl_ms=50"]).await;
        let path = format!("/v1/sales/{sale}/tokens");
        let mut token = String::new();
        eventually("a token", async || {
            let issued = Answer::of(other.request(Method::POST, &path, "carol")).await;
            if issued.status == 201 {
                token = issued.text("token");
            }
            issued.status == 201
        })
        .await;
        let first = other.buy(&sale, "carol", 1, Some(&token)).await;
        assert_eq!(first.status, 202, "{first:?}");
        let again = world.buy(&sale, "carol", 1, Some(&token)).await;
        assert_eq!((again.status, again.body), (202, first.body));
        other.stop().await;
        world.stop().await;
    });
}
