//! Nothing old decides (row Q5): a process to which no question came for a while answers the first one rightly, and by what only it
//! remembers no purchase is let in that the sale does not take.

use crate::support::basics::resp::RawRedis;
use crate::support::buyers::orders::LONG;
use crate::support::processes::own_redis;
use crate::support::world::database_sessions::Session;
use crate::support::world::{Answer, World, eventually, run, time_passes};
use reqwest::Method;
use seckill::domain::ids::SaleId;
use seckill::domain::order_life::PaymentTerms;
use seckill::domain::sale::Sale;
use seckill::roles::Role;
use seckill::runtime::now_ms;

/// A view is fresh for a moment, and decides nothing soon after.
const BRIEF: [&str; 2] = ["p1_entry.cache_ttl_ms=50", "p1_entry.cache_stale_max_ms=500"];
/// What a process knows stays as it is.
const LASTING: [&str; 2] = ["p1_entry.cache_ttl_ms=60000", "p1_entry.cache_stale_max_ms=60000"];
/// Longer than a view may decide: no question comes meanwhile.
const SILENCE_MS: u64 = 1_000;
const HOUR_MS: i64 = 3_600_000;

async fn page(world: &World, sale: &SaleId) -> Answer {
    Answer::of(world.request(Method::GET, &format!("/v1/sales/{sale}"), "reader")).await
}

async fn listed(world: &World, sale: &SaleId) -> serde_json::Value {
    let list = Answer::of(world.request(Method::GET, "/v1/sales", "reader")).await;
    let sales = list.json["sales"].as_array().expect("a list").clone();
    sales.into_iter().find(|listed| listed["sale_id"] == sale.as_str()).unwrap_or_default()
}

/// A change as an operator's command leaves it, without a call of this process: the row, no cached sale, Redis' terms.
async fn changed(world: &World, sale: &SaleId, set: &str) {
    world.sql(&format!("UPDATE sales SET {set} WHERE sale_id = '{sale}'")).await;
    world.redis(&["DEL", &world.servers.redis.keys.sale(sale)]).await;
    assert!(world.servers.redis.sale_keys.set_terms(&world.stored(sale).await, 0).await.unwrap());
}

#[test]
fn the_first_purchase_after_a_silence_is_judged_by_the_sale_as_it_is() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &BRIEF).await;
        let later =
            |sale: &mut Sale| (sale.starts_at_ms, sale.ends_at_ms) = (now_ms() + HOUR_MS, now_ms() + 2 * HOUR_MS);
        let over = |sale: &mut Sale| (sale.starts_at_ms, sale.ends_at_ms) = (now_ms() - HOUR_MS, now_ms() - 1_000);
        let (room, tokens, hidden) = (
            world.sale("room", 5, None).await,
            world.sale("tokens", 5, None).await,
            world.sale("hidden", 5, None).await,
        );
        let (moved, lengthened) = (world.sale_with("moved", 5, later).await, world.sale_with("longer", 5, over).await);
        let cases = [
            (&room, "waiting_room = 1", (200, "P1-S1"), 428),
            (&tokens, "token_required = 1", (200, "P1-S1"), 428),
            (&hidden, "hidden = 1", (200, "P1-S1"), 404),
            (&moved, "starts_at = NOW(3) - INTERVAL 1 SECOND", (200, "P1-S5"), 202),
            (&lengthened, "ends_at = NOW(3) + INTERVAL 1 HOUR", (200, "P1-S6"), 202),
        ];
        for (sale, set, known, _) in &cases {
            let shown = page(&world, sale).await;
            assert_eq!((shown.status, shown.code().as_str()), *known, "{sale}: {shown:?}");
            changed(&world, sale, set).await;
        }
        time_passes(SILENCE_MS).await;
        for (sale, set, _, status) in cases {
            let first = world.buy(sale, "alice", 1, None).await;
            assert_eq!(first.status, status, "{sale}, {set}: {first:?}");
        }
        world.finish().await;
    });
}

#[test]
fn units_that_came_back_are_sold_by_the_first_purchase_after_a_silence_at_every_process() {
    run(async {
        let world = World::with(&Role::ALL, &BRIEF).await;
        let other = world.second_world(&[Role::Api], &BRIEF).await;
        let (topped, terms) = (world.sale("topped", 1, None).await, PaymentTerms { limit_returns: true, ..LONG });
        let cancelled = world.paying_sale("cancelled", 1, None, terms).await;
        world.bought(&topped, "alice").await;
        let order = world.ordered(&cancelled, "alice").await;
        for sale in [&topped, &cancelled] {
            for process in [&world, &other] {
                assert!(process.buy(sale, "bob", 1, None).await.is_sold_out());
            }
        }
        world.sale_control().top_up(&topped, "more", 2).await.unwrap();
        assert_eq!(world.cancel_mine("alice", order).await.status, 200);
        let units = async || world.servers.redis.stock.units(&cancelled, 0).await.unwrap();
        eventually("the unit is back", async || units().await == Some(1)).await;
        time_passes(SILENCE_MS).await;
        assert_eq!(other.buy(&topped, "bob", 1, None).await.status, 202);
        assert_eq!(world.buy(&topped, "carol", 1, None).await.status, 202);
        assert_eq!(other.buy(&cancelled, "bob", 1, None).await.status, 202, "in the process that did not cancel");
        other.stop().await;
        world.finish().await;
    });
}

#[test]
fn what_is_shown_after_a_silence_is_the_sale_as_it_is() {
    run(async {
        let world = World::with(&[Role::Api], &BRIEF).await;
        let (sale, gone) = (world.sale("shown", 5, None).await, world.sale("gone", 5, None).await);
        eventually("the list has it", async || listed(&world, &sale).await["price_cents"] == 100).await;
        assert_eq!(
            (page(&world, &sale).await.json["price_cents"].as_i64(), page(&world, &gone).await.status),
            (Some(100), 200)
        );
        changed(&world, &sale, "price_cents = 777, title = 'new'").await;
        changed(&world, &gone, "hidden = 1").await;
        // Longer than a list is kept.
        time_passes(1_500).await;
        let first = listed(&world, &sale).await;
        assert_eq!((first["price_cents"].as_i64(), first["title"].as_str()), (Some(777), Some("new")), "the list");
        let first = page(&world, &sale).await;
        assert_eq!((first.json["price_cents"].as_i64(), first.header("age")), (Some(777), ""), "{first:?}");
        assert_eq!(page(&world, &gone).await.status, 404);
        world.finish().await;
    });
}

#[test]
fn a_list_shows_the_row_that_was_read_and_not_what_the_entry_remembers() {
    run(async {
        let world = World::with(&[Role::Api], &LASTING).await;
        let sale = world.sale("row", 5, None).await;
        assert_eq!(page(&world, &sale).await.json["price_cents"], 100);
        changed(&world, &sale, "price_cents = 777").await;
        eventually("the row's price", async || listed(&world, &sale).await["price_cents"] == 777).await;
        assert_eq!(page(&world, &sale).await.json["price_cents"], 100, "the entry still remembers the old one");
        world.finish().await;
    });
}

#[test]
fn the_script_refuses_who_comes_without_a_token_to_a_process_that_knows_of_no_door() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &LASTING).await;
        let (room, tokens) = (world.sale("door-room", 5, None).await, world.sale("door-tokens", 5, None).await);
        for (sale, set) in [(&room, "waiting_room = 1"), (&tokens, "token_required = 1")] {
            assert_eq!(page(&world, sale).await.status, 200);
            changed(&world, sale, set).await;
            let first = world.buy(sale, "alice", 1, None).await;
            assert_eq!((first.status, first.code().as_str()), (428, "TOKEN_REQUIRED"), "{sale}: {first:?}");
        }
        // The refusal was news to the process: it has read the sale again.
        assert_eq!(page(&world, &room).await.json["waiting_room"], true);
        assert_eq!(world.token_for(&room, "alice", None).await.code(), "PLACE_REQUIRED");
        let (token, _) = world.token(&tokens, "alice").await;
        assert_eq!(world.buy(&tokens, "alice", 1, Some(&token)).await.status, 202);
        world.finish().await;
    });
}

#[test]
fn a_process_that_knows_an_older_start_ends_no_draw() {
    run(async {
        let world = World::with(&[Role::Api], &LASTING).await;
        let sale = world.room("draw", 5).await;
        assert_eq!(page(&world, &sale).await.code(), "P1-S1", "it has started, as this process knows");
        changed(&world, &sale, "starts_at = NOW(3) + INTERVAL 10 MINUTE").await;
        for user in ["alice", "bob"] {
            let entered = world.enter_room(&sale, user).await;
            assert_eq!((entered.status, entered.json["place"].is_null()), (200, true), "{entered:?}");
        }
        // Its releases run every 200 ms.
        time_passes(700).await;
        let door = world.servers.redis.keys.door(0, &sale);
        assert_eq!(RawRedis::of(&world).await.call(&["HEXISTS", &door, "begun"]).await.int(), 0, "the draw is open");
        let started = world.as_if_started(&sale).await;
        let mut places = world.numbers(&started, &["alice".to_owned(), "bob".to_owned()]).await;
        places.sort_unstable();
        assert_eq!(places, [1, 2]);
        world.stop().await;
    });
}

#[test]
fn while_the_servers_cannot_be_asked_an_old_sale_is_shown_and_decides_nothing() {
    run(async {
        let (_server, world) = own_redis::world("old-decides-nothing", &[Role::Api], &BRIEF).await;
        let sale = world.sale("away", 5, None).await;
        assert_eq!(page(&world, &sale).await.status, 200);
        // NOPERM to the reading of the cached sale.
        RawRedis::of(&world).await.call(&["ACL", "SETUSER", "default", "-hmget"]).await;
        time_passes(1_200).await;
        for path in ["orders", "tokens", "places"] {
            let path = format!("/v1/sales/{sale}/{path}");
            let answer = Answer::of(world.request(Method::POST, &path, "alice").json(&serde_json::json!({}))).await;
            assert_eq!((answer.status, answer.retry_after_s() > 0), (503, true), "{path}: {answer:?}");
        }
        let shown = page(&world, &sale).await;
        assert_eq!((shown.status, shown.json["sale_id"].as_str()), (200, Some("away")), "{shown:?}");
        assert!(shown.header("age").parse::<u64>().is_ok_and(|age_s| age_s >= 1), "it says how old it is: {shown:?}");
        RawRedis::of(&world).await.call(&["ACL", "SETUSER", "default", "+hmget"]).await;
        assert_eq!(page(&world, &sale).await.header("age"), "");
        world.stop().await;
    });
}

#[test]
fn while_the_database_stands_still_a_sale_goes_on_by_the_terms_that_redis_has_and_by_no_others() {
    run(async {
        let set = [BRIEF[0], BRIEF[1], "mysql.statement_timeout_ms=60000"];
        let world = World::with(&[Role::Api], &set).await;
        let sale = world.sale("by-redis", 2, None).await;
        let stored = world.stored(&sale).await;
        // The first call of the script passes the boot fence, which asks the database.
        assert_eq!(world.buy(&sale, "dave", 1, None).await.status, 202);
        let mut session = Session::open(&world).await;
        session.run("LOCK TABLES sales WRITE").await;
        world.redis(&["DEL", &world.servers.redis.keys.sale(&sale)]).await;
        time_passes(SILENCE_MS).await;
        assert_eq!(world.buy(&sale, "alice", 1, None).await.status, 202);
        time_passes(SILENCE_MS).await;
        assert!(world.buy(&sale, "bob", 1, None).await.is_sold_out(), "the stock is Redis' own");
        // Changed just before the database stood still: the process remembers another door.
        let with_room = Sale { waiting_room: true, ..stored };
        assert!(world.servers.redis.sale_keys.set_terms(&with_room, 0).await.unwrap());
        time_passes(SILENCE_MS).await;
        assert_eq!(world.buy(&sale, "carol", 1, None).await.status, 503, "nothing confirms what it remembers");
        session.run("UNLOCK TABLES").await;
        world.stop().await;
    });
}

#[test]
fn a_list_waits_for_no_database_that_stands_still() {
    run(async {
        let world = World::with(&[Role::Api], &["mysql.statement_timeout_ms=60000"]).await;
        let sale = world.sale("still", 5, None).await;
        eventually("the list has it", async || listed(&world, &sale).await["sale_id"] == "still").await;
        let mut session = Session::open(&world).await;
        session.run("LOCK TABLES sales WRITE").await;
        time_passes(2_500).await;
        // Each of them would wait for the lock, which is given back only behind them.
        for _ in 0..5 {
            assert_eq!(listed(&world, &sale).await["sale_id"], "still");
        }
        session.run("UPDATE sales SET title = 'new' WHERE sale_id = 'still'; UNLOCK TABLES").await;
        eventually("the new list", async || listed(&world, &sale).await["title"] == "new").await;
        world.finish().await;
    });
}

#[test]
fn a_confirmed_status_has_its_order_in_a_process_that_never_looked_the_sale_up() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay, Role::Consumer], &[]).await;
        // Before there is a sale: their list, which the start asks for, shows none.
        let (other, third) = (world.second_world(&[Role::Api], &[]).await, world.second_world(&[Role::Api], &[]).await);
        let sale = world.paying_sale("elsewhere", 5, None, LONG).await;
        let id = world.ordered(&sale, "alice").await;
        let status = other.status(&sale, "alice", &id.to_string(), 0).await;
        assert_eq!(
            (status.text("status").as_str(), status.json["order"]["state"].as_str()),
            ("CONFIRMED", Some("UNPAID")),
            "{status:?}"
        );
        assert!(status.json["order"]["pay_by"].is_string(), "{status:?}");
        let path = format!("/v1/sales/{sale}/orders/{id}/events");
        let events = Answer::of(third.request(Method::GET, &path, "alice")).await;
        assert!(events.body.contains(r#""state":"UNPAID""#), "{events:?}");
        let plain = world.sale("plain", 5, None).await;
        let id = world.ordered(&plain, "bob").await;
        assert!(other.status(&plain, "bob", &id.to_string(), 0).await.json["order"].is_null(), "no payment step");
        third.stop().await;
        other.stop().await;
        world.finish().await;
    });
}
