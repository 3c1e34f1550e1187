//! Floods that can buy nothing reach no server but for a trickle (A5, A9, A11), by the servers' own counters.

use crate::support::basics::answer::Answer;
use crate::support::basics::database_kind::questions;
use crate::support::world::database_sessions::Session;
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run};
use futures::StreamExt;
use reqwest::{Method, RequestBuilder};
use seckill::dev::PrivateServers;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Requests of one flood.
const FLOOD: usize = 6_000;
/// Commands and statements a server may see beside, in all and for each second: leases, refreshes of caches, readings of
/// background tasks, and fifty look-ups a second of unknown sales, which are a handful of commands each.
const TRICKLE: i64 = 100;
const TRICKLE_PER_S: i64 = 300;

/// What a server may see in a time; never as much as half of the flood, however slow the machine: one command each would be twice that.
fn trickle(took: Duration) -> i64 {
    let seconds = i64::try_from(took.as_millis()).unwrap() / 1_000 + 1;
    (TRICKLE + TRICKLE_PER_S * seconds).min(i64::try_from(FLOOD).unwrap() / 2)
}

/// Sends a flood and counts the answers by status and code.
async fn flood(make: impl Fn(usize) -> RequestBuilder) -> BTreeMap<(u16, String), usize> {
    let answers = futures::stream::iter((0..FLOOD).map(|n| Answer::of(make(n)))).buffer_unordered(64);
    let count = |mut counts: BTreeMap<_, _>, answer: Answer| async move {
        *counts.entry((answer.status, answer.code())).or_default() += 1;
        counts
    };
    answers.fold(BTreeMap::new(), count).await
}

/// Commands Redis and statements the database have processed since they started.
async fn work_done(world: &World) -> (i64, i64) {
    let stats = world.redis(&["INFO", "stats"]).await;
    let line = stats.as_str().unwrap().lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
    (line.unwrap().trim().parse().unwrap(), questions(&mut Session::open(world).await.0).await)
}

/// The request id of each question of a flood.
type MakeId<'a> = &'a dyn Fn(usize) -> u64;

/// What a flood brought about.
struct FloodCost {
    answers: BTreeMap<(u16, String), usize>,
    commands: i64,
    statements: i64,
    trickle: i64,
}

/// Sends a flood to a world and counts what its servers did meanwhile.
async fn cost_of_flood(world: &World, what: &str, make: impl Fn(usize) -> RequestBuilder) -> FloodCost {
    let (before, begun) = (work_done(world).await, Instant::now());
    let answers = flood(make).await;
    let (after, trickle) = (work_done(world).await, trickle(begun.elapsed()));
    let (commands, statements) = (after.0 - before.0, after.1 - before.1);
    eprintln!("{what}: {FLOOD} requests, {commands} commands of Redis, {statements} statements of the database");
    FloodCost { answers, commands, statements, trickle }
}

fn all(expected: (u16, &str)) -> BTreeMap<(u16, String), usize> {
    BTreeMap::from([((expected.0, expected.1.to_owned()), FLOOD)])
}

/// Sends a flood to a world and checks that every answer is `expected` and that the servers hardly noticed.
async fn reaches_nothing(world: &World, what: &str, expected: (u16, &str), make: impl Fn(usize) -> RequestBuilder) {
    let cost = cost_of_flood(world, what, make).await;
    assert_eq!(cost.answers, all(expected), "{what}");
    assert!(cost.commands < cost.trickle && cost.statements < cost.trickle, "{what}: more than {}", cost.trickle);
}

async fn world(servers: &PrivateServers, name: &str) -> World {
    World::on_breakable(servers, name, &[Role::Api], &[]).await
}

fn buy(world: &World, sale: &SaleId, n: usize) -> RequestBuilder {
    let path = format!("/v1/sales/{sale}/orders");
    world.request(Method::POST, &path, &format!("crowd-{n}")).json(&serde_json::json!({}))
}

#[test]
fn floods_of_random_ids_and_of_sales_that_sell_nothing_end_at_the_entry() {
    run(async {
        let servers = breakable_servers().await;
        let world = world(&servers, "floods").await;
        let sold_out = world.sale("flood-out", 1, None).await;
        let hour = 3_600_000;
        let early = world.sale_with("flood-early", 5, |sale| sale.starts_at_ms += hour).await;
        assert_eq!(world.buy(&sold_out, "first", 1, None).await.status, 202);
        assert_eq!(world.buy(&sold_out, "second", 1, None).await.status, 410);
        // Known to this process now, and the filter has been filled.
        assert_eq!(world.buy(&early, "first", 1, None).await.status, 425);
        eventually("a filter", async || {
            let (before, id) = (work_done(&world).await.1, rand::random::<u64>());
            for n in 0..200 {
                world.buy(&SaleId::parse(&format!("no-{id}-{n}")).unwrap(), "first", 1, None).await;
            }
            work_done(&world).await.1 - before < 150
        })
        .await;

        let random = |n: usize| SaleId::parse(&format!("random-{n}")).unwrap();
        reaches_nothing(&world, "random ids", (404, "P1-S3"), |n| buy(&world, &random(n), n)).await;
        reaches_nothing(&world, "sold out", (410, "P1-S2"), |n| buy(&world, &sold_out, n)).await;
        reaches_nothing(&world, "not started", (425, "P1-S5"), |n| buy(&world, &early, n)).await;
        reaches_nothing(&world, "statuses of random sales", (404, "ORDER_NOT_FOUND"), |n| {
            world.request(Method::GET, &format!("/v1/sales/{}/orders/4242", random(n)), "someone")
        })
        .await;

        // And a new sale is found soon all the same: at the latest when the filter has it.
        let new = world.sale("flood-new", 5, None).await;
        eventually("the new sale sells", async || world.buy(&new, "first", 1, None).await.status == 202).await;
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
        world.stop().await;
    });
}

#[test]
fn a_crowd_that_polls_costs_the_database_nothing_and_redis_a_fraction() {
    run(async {
        let servers = breakable_servers().await;
        let world = world(&servers, "polls").await;
        let sale = world.sale("polled", 5, None).await;
        let mine = world.bought(&sale, "alice").await;
        let status = |n: usize| {
            // Every second one asks for a request that was never accepted, made just now.
            let id = mine.get() + u64::try_from(n % 2).unwrap() * (1 + u64::try_from(n).unwrap());
            world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}"), "alice")
        };
        let cost = cost_of_flood(&world, "polls", status).await;
        let expected = [((200, "P2-R0".to_owned()), FLOOD / 2), ((404, "ORDER_NOT_FOUND".to_owned()), FLOOD / 2)];
        assert_eq!(cost.answers, BTreeMap::from(expected));
        assert!(cost.statements < cost.trickle, "{} statements, over {}", cost.statements, cost.trickle);
        let commands = cost.commands;
        assert!(commands < i64::try_from(FLOOD).unwrap() * 3 / 4, "{commands} commands for {FLOOD} questions");
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
        world.stop().await;
    });
}

#[test]
fn statuses_of_invented_requests_hardly_reach_the_database() {
    run(async {
        let servers = breakable_servers().await;
        let world = world(&servers, "invented").await;
        let live = world.sale("invented", 5, None).await;
        // Redis has no ledger of it: what is not found there may still be in the database.
        let draft = world.draft("no-ledger", 5, |sale| sale.starts_at_ms += 3_000_000).await;
        let recent = world.bought(&live, "alice").await.get();
        let show =
            |sale: &SaleId, id: u64| world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}"), "alice");
        eventually("the filter has the draft", async || {
            let asked = (0..100).map(|n| Answer::of(show(&draft, recent + n)));
            futures::future::join_all(asked).await.iter().all(|answer| answer.status == 404)
        })
        .await;
        let n64 = |n: usize| u64::try_from(n).unwrap();
        // A request id has its milliseconds above 22 other bits.
        let day = 86_400_000 << 22;
        let floods: [(&str, &SaleId, MakeId<'_>); 4] = [
            ("ids from before the sale", &live, &|n| 4_242 + n64(n)),
            ("ids from the future", &draft, &|n| recent + day + n64(n)),
            ("recent ids", &draft, &|n| recent + 1_000 + n64(n)),
            ("one id", &draft, &|_| recent + 1),
        ];
        for (what, sale, id) in floods {
            let cost = cost_of_flood(&world, what, |n| show(sale, id(n))).await;
            assert_eq!(cost.answers, all((404, "ORDER_NOT_FOUND")), "{what}");
            assert!(cost.statements < cost.trickle, "{what}: {} statements, over {}", cost.statements, cost.trickle);
        }
        world.stop().await;
    });
}

#[test]
fn an_account_over_its_rate_costs_redis_nothing_and_takes_no_other_buyers_rate() {
    run(async {
        let servers = breakable_servers().await;
        let set = ["p1_entry.user_rate_per_s=1", "p1_entry.global_rate_per_s=200"];
        let world = World::on_breakable(&servers, "greedy", &[Role::Api], &set).await;
        let sale = world.sale("greedy", 1_000, None).await;
        let patient = async {
            for n in 0..100 {
                let answer = world.buy(&sale, &format!("patient-{n}"), 1, None).await;
                assert_eq!(answer.status, 202, "buyer {n}: {answer:?}");
            }
        };
        let greedy = cost_of_flood(&world, "greedy", |_| {
            let path = format!("/v1/sales/{sale}/orders");
            world.request(Method::POST, &path, "greedy").json(&serde_json::json!({}))
        });
        let (cost, ()) = tokio::join!(greedy, patient);
        let refused = cost.answers.get(&(429, "RATE_LIMITED".to_owned())).copied().unwrap_or(0);
        assert!(refused > FLOOD * 9 / 10, "{:?}", cost.answers);
        // Each of the hundred purchases beside is some thirty commands, those of its script among them.
        assert!(cost.commands < cost.trickle + 3_000, "{} commands, over {}", cost.commands, cost.trickle);
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
        world.stop().await;
    });
}

/// Calls of scripts since Redis was started.
async fn script_calls(world: &World) -> i64 {
    let stats = world.redis(&["INFO", "commandstats"]).await;
    let line = stats.as_str().unwrap().lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.unwrap().split(',').next().unwrap().parse().unwrap()
}

#[test]
fn holders_of_tokens_run_no_script_after_the_sell_out_and_winners_are_answered() {
    run(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "holders", &[Role::Api], &["p1_entry.user_rate_per_s=10000"]).await;
        let sale = world.sale_with("held", 4, |sale| sale.token_required = true).await;
        let mut tokens = Vec::new();
        for n in 0..40 {
            tokens.push((format!("holder-{n}"), world.token(&sale, &format!("holder-{n}")).await.0));
        }
        for (at, (user, token)) in tokens.iter().enumerate() {
            let answer = world.buy(&sale, user, 1, Some(token)).await;
            assert!(if at < 4 { answer.status == 202 } else { answer.status == 410 }, "{at}: {answer:?}");
        }
        let scripts = script_calls(&world).await;
        let cost = cost_of_flood(&world, "holders", |n| {
            let (user, token) = &tokens[n % tokens.len()];
            let path = format!("/v1/sales/{sale}/orders");
            let request = world.request(Method::POST, &path, user).json(&serde_json::json!({ "quantity": 1 }));
            request.header("Idempotency-Key", token)
        })
        .await;
        let scripts = script_calls(&world).await - scripts;
        let expected = [((202, "P2-R0".to_owned()), FLOOD / 10), ((410, "P1-S2".to_owned()), FLOOD * 9 / 10)];
        assert_eq!(cost.answers, BTreeMap::from(expected));
        // Leases and the checks of warmed sales call scripts, too: a few in ten seconds.
        assert!(scripts < 30, "{scripts} script calls for {FLOOD} repeats");
        let commands = cost.commands;
        assert!(commands < i64::try_from(FLOOD).unwrap() / 2, "{commands} commands for {FLOOD} repeats");
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
        world.stop().await;
    });
}

#[test]
fn a_crowd_that_reloads_the_list_costs_the_same_for_any_number_of_sales() {
    run(async {
        let servers = breakable_servers().await;
        let world = world(&servers, "listed").await;
        for n in 0..200 {
            world.sale(&format!("listed-{n}"), 5, None).await;
        }
        let (before, begun) = (work_done(&world).await, Instant::now());
        let reads = (0..400).map(|_| world.http.get(format!("{}/v1/sales", world.api)).send());
        let answers: Vec<_> = futures::stream::iter(reads).buffer_unordered(16).collect().await;
        assert!(answers.into_iter().all(|answer| answer.is_ok_and(|answer| answer.status() == 200)));
        let (after, took) = (work_done(&world).await, begun.elapsed());
        let (commands, statements) = (after.0 - before.0, after.1 - before.1);
        eprintln!("list of 200 sales: {commands} commands, {statements} statements in {took:?}");
        // Fifty sales at once and fifty a second are read again at most, with ten commands each when none of them is known.
        let most = TRICKLE + 50 * 10 * (1 + i64::try_from(took.as_secs()).unwrap() + 1);
        assert!(commands < most && statements < most, "{commands} commands, {statements} statements, over {most}");
        world.stop().await;
    });
}
