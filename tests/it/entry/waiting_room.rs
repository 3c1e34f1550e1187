//! A sale with a waiting room is bought of by those it released, and by no others.

use crate::support::buyers::orders::LONG;
use crate::support::buyers::waiting_rooms::buyers;
use crate::support::world::{Answer, World, eventually, run};
use reqwest::Method;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role;

#[test]
fn no_buyer_gets_past_the_waiting_room() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.room_release_per_s=1"]).await;
        let (sale, other) = (world.room("gate", 10).await, world.room("other-gate", 10).await);
        let ahead = buyers(0..600);
        world.numbers(&world.stored(&sale).await, &ahead).await;
        world.numbers(&world.stored(&other).await, &buyers(0..1)).await;
        let came = world.enter_room(&sale, "alice").await;
        assert_eq!((came.text("state"), came.json["place"].as_u64()), ("waiting".to_owned(), Some(601)), "{came:?}");
        assert!(!came.header("retry-after").is_empty() && came.json["ahead"].as_u64() > Some(500), "{came:?}");
        let ticket = came.text("ticket");

        let direct = world.buy(&sale, "alice", 1, None).await;
        assert_eq!((direct.status, direct.code().as_str()), (428, "TOKEN_REQUIRED"), "{direct:?}");
        for (without, answer) in [
            ("a token", world.token_for(&sale, "alice", None).await),
            ("a place", Answer::of(world.request(Method::GET, "/v1/sales/gate/places", "alice")).await),
        ] {
            assert_eq!((answer.status, answer.code().as_str()), (428, "PLACE_REQUIRED"), "{without}: {answer:?}");
            assert!(answer.text("detail").contains("POST /v1/sales/gate/places"), "{answer:?}");
        }
        let early = world.token_for(&sale, "alice", Some(&ticket)).await;
        assert_eq!((early.status, early.code().as_str()), (425, "PLACE_WAITING"), "{early:?}");
        assert!(early.header("retry-after").parse::<u64>().unwrap() >= 1, "{early:?}");

        let first = world.wait_turn(&sale, &ahead[0]).await;
        let bob = world.enter_room(&other, "bob").await.text("ticket");
        let token = world.token_for(&sale, &ahead[0], Some(&first)).await.text("token");
        let mut tampered = first.clone();
        let middle = first.len() / 2;
        tampered.replace_range(middle..=middle, if &first[middle..=middle] == "A" { "B" } else { "A" });
        let access = world.access("alice");
        for (what, user, ticket) in [
            ("another buyer's", "alice", &first),
            ("another sale's", "bob", &bob),
            ("a changed one", &ahead[0], &tampered),
            ("a purchase token", &ahead[0], &token),
            ("an access token", "alice", &access),
        ] {
            for answer in [world.token_for(&sale, user, Some(ticket)).await, world.ask_place(&sale, user, ticket).await]
            {
                assert_eq!((answer.status, answer.code().as_str()), (403, "PLACE_INVALID"), "{what}: {answer:?}");
            }
        }
        let as_key = world.buy(&sale, &ahead[0], 1, Some(&first)).await;
        assert_eq!(
            (as_key.status, as_key.code().as_str()),
            (403, "TOKEN_INVALID"),
            "a ticket buys nothing: {as_key:?}"
        );
        world.assert_untouched(&sale, 10).await;
        world.stop().await;
    });
}

#[test]
fn a_released_buyer_buys_and_repeats_whatever_happens_to_the_room() {
    run(async {
        let world = World::start().await;
        let sale = world.room("right", 10).await;
        let (one, two) = (world.wait_turn(&sale, "one").await, world.wait_turn(&sale, "two").await);
        let [one, two] = [("one", one), ("two", two)].map(async |(user, ticket)| {
            let issued = world.token_for(&sale, user, Some(&ticket)).await;
            assert_eq!(issued.status, 201, "{issued:?}");
            issued.text("token")
        });
        let (one, two) = (one.await, two.await);
        let bought = world.buy(&sale, "one", 1, Some(&one)).await;
        assert_eq!(bought.status, 202, "{bought:?}");
        world.lose_room(&sale).await;
        assert_eq!(world.buy(&sale, "one", 1, Some(&one)).await.body, bought.body, "a repeat never meets the room");
        assert_eq!(world.buy(&sale, "two", 1, Some(&two)).await.status, 202, "the time of the token counts");
        world.finish().await;
    });
}

#[test]
fn a_sale_without_a_room_knows_nothing_of_it() {
    run(async {
        let world = World::start().await;
        let (plain, sale) = (world.sale("plain", 5, None).await, world.room("roomy", 5).await);
        let none = world.enter_room(&plain, "alice").await;
        assert_eq!((none.status, none.code().as_str()), (404, "NO_WAITING_ROOM"), "{none:?}");
        assert_eq!(world.ask_place(&plain, "alice", "x").await.code(), "NO_WAITING_ROOM");
        let (token, _) = world.token(&plain, "alice").await;
        assert_eq!(world.buy(&plain, "alice", 1, Some(&token)).await.status, 202);
        assert_eq!(world.buy(&plain, "bob", 1, None).await.status, 202);
        for (sale, has) in [(&plain, false), (&sale, true)] {
            let shown = Answer::of(world.request(Method::GET, &format!("/v1/sales/{sale}"), "alice")).await;
            assert_eq!(shown.json["waiting_room"], has, "{shown:?}");
            // As a build without rooms cached it.
            let mut old = serde_json::to_value(world.stored(sale).await).unwrap();
            assert_eq!(old.as_object_mut().unwrap().remove("waiting_room"), Some(has.into()));
            let read: seckill::domain::sale::Sale = serde_json::from_value(old).unwrap();
            assert!(!read.waiting_room);
        }
        world.finish().await;
    });
}

#[test]
fn a_room_is_ordered_and_shown_on_the_command_line() {
    run(async {
        let world = World::with(&[], &[]).await;
        let window = ["--starts-at", "2030-01-01T10:00:00Z", "--ends-at", "2030-01-01T12:00:00Z"];
        for (id, flag, has) in [("cli-room", &["--waiting-room"][..], true), ("cli-plain", &[], false)] {
            let create = ["sale", "create", "--id", id, "--product", "p", "--title", "t", "--stock", "5"];
            world.cli(&[&create[..], &window, flag].concat()).exits(0);
            let shown = world.cli(&["sale", "show", id, "--json"]).exits(0).json();
            assert_eq!(shown["sale"]["waiting_room"], has, "{shown}");
            assert_eq!(world.stored(&SaleId::parse(id).unwrap()).await.waiting_room, has);
        }
        world.stop().await;
    });
}

#[test]
fn a_sold_out_sale_ends_the_waiting() {
    run(async {
        let world = World::start().await;
        let sale = world.room("ends", 1).await;
        let ticket = world.wait_turn(&sale, "winner").await;
        let waiting = world.enter_room(&sale, "loser").await.text("ticket");
        let token = world.token_for(&sale, "winner", Some(&ticket)).await.text("token");
        assert_eq!(world.buy(&sale, "winner", 1, Some(&token)).await.status, 202);
        eventually("those who wait get it", async || {
            let asked = world.ask_place(&sale, "loser", &waiting).await;
            (asked.status, asked.code().as_str()) == (410, "P1-S2")
        })
        .await;
        for answer in
            [world.enter_room(&sale, "latecomer").await, world.token_for(&sale, "loser", Some(&waiting)).await]
        {
            assert_eq!((answer.status, answer.code().as_str()), (410, "P1-S2"), "{answer:?}");
        }
        let released = world.release_cursor(&sale).await.released;
        world.numbers(&world.stored(&sale).await, &buyers(0..100)).await;
        crate::support::world::time_passes(1_000).await;
        assert_eq!(world.release_cursor(&sale).await.released, released, "no buyer is released to find nothing");
        world.sale_control().top_up(&sale, "more", 1).await.unwrap();
        eventually("the entry has seen it", async || world.enter_room(&sale, "loser").await.status == 200).await;
        world.wait_turn(&sale, "loser").await;
        world.finish().await;
    });
}

#[test]
fn a_room_of_a_sold_out_sale_goes_on_when_an_order_expires_or_is_cancelled() {
    run(async {
        let world = World::with(&Role::ALL, &[]).await;
        let sale = world.sale_with("back", 1, |sale| (sale.waiting_room, sale.payment) = (true, Some(LONG))).await;
        let mut last = None;
        for (n, user) in ["alice", "bob", "carol"].into_iter().enumerate() {
            let ticket = match n {
                0 => world.wait_turn(&sale, user).await,
                _ => {
                    eventually("no more than one unit", async || {
                        let answer = world.enter_room(&sale, user).await;
                        (answer.status, answer.code().as_str()) == (410, "P1-S2")
                    })
                    .await;
                    let (owner, order) = last.expect("an owner");
                    match n {
                        1 => world.overdue(order).await,
                        _ => assert_eq!(world.cancel_mine(owner, order).await.text("state"), "CANCELLED"),
                    }
                    eventually("the entry has seen it", async || world.enter_room(&sale, user).await.status == 200)
                        .await;
                    world.wait_turn(&sale, user).await
                }
            };
            let token = world.token_for(&sale, user, Some(&ticket)).await.text("token");
            let bought = world.buy(&sale, user, 1, Some(&token)).await;
            assert_eq!(bought.status, 202, "{bought:?}");
            let order = RequestId::parse(&bought.text("request_id")).unwrap();
            eventually("an order", async || world.order_in("UNPAID", order).await).await;
            last = Some((user, order));
        }
        world.finish().await;
    });
}

#[test]
fn who_waits_learns_about_how_long_once_places_are_released() {
    run(async {
        let world = World::with(&[Role::Api], &["p1_entry.room_release_per_s=20"]).await;
        let early = world.enter_room(&world.early_room("estimate-early", 10).await, "alice").await;
        assert!(early.json.get("estimated_wait_s").is_some_and(serde_json::Value::is_null), "{early:?}");
        let sale = world.room("estimate", 10).await;
        let ahead = buyers(0..5_000);
        world.numbers(&world.stored(&sale).await, &ahead).await;
        let ticket = world.enter_room(&sale, "alice").await.text("ticket");
        eventually("an estimate", async || {
            let asked = world.ask_place(&sale, "alice", &ticket).await;
            asked.json["estimated_wait_s"].as_u64().is_some_and(|seconds| (1..=86_400).contains(&seconds))
        })
        .await;
        let first = world.wait_turn(&sale, &ahead[0]).await;
        let released = world.ask_place(&sale, &ahead[0], &first).await;
        assert_eq!((released.text("state").as_str(), &released.json["estimated_wait_s"]), ("released", &0.into()));
        world.stop().await;
    });
}
