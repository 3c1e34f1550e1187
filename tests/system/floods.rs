//! Floods that can buy nothing reach no server but for a trickle (A5, A9, A11), by the servers' own counters.

use crate::support::answer::Answer;
use crate::support::fault_injection::breakable_servers;
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
/// Commands and statements a server may see beside, in all and for each second: leases, refreshes of caches, looks of
/// background tasks, and fifty look-ups a second of sales unheard of, which are a handful of commands each.
const TRICKLE: i64 = 100;
const TRICKLE_PER_S: i64 = 300;

/// What a server may see in a time; never as much as a third of the flood.
fn trickle(took: Duration) -> i64 {
    let seconds = i64::try_from(took.as_millis()).unwrap() / 1_000 + 1;
    (TRICKLE + TRICKLE_PER_S * seconds).min(i64::try_from(FLOOD).unwrap() / 3)
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
    let questions = "SELECT CAST(VARIABLE_VALUE AS SIGNED) AS n FROM information_schema.GLOBAL_STATUS \
                     WHERE VARIABLE_NAME = 'QUESTIONS'";
    (line.unwrap().trim().parse().unwrap(), world.number(questions).await)
}

/// Sends a flood to a world and checks that every answer is `expected` and that the servers hardly noticed.
async fn reaches_nothing(world: &World, what: &str, expected: (u16, &str), make: impl Fn(usize) -> RequestBuilder) {
    let (before, begun) = (work_done(world).await, Instant::now());
    let answers = flood(make).await;
    let (after, trickle) = (work_done(world).await, trickle(begun.elapsed()));
    let worked = (after.0 - before.0, after.1 - before.1);
    eprintln!("{what}: {FLOOD} requests, {} commands of Redis, {} statements of the database", worked.0, worked.1);
    assert_eq!(answers, BTreeMap::from([((expected.0, expected.1.to_owned()), FLOOD)]), "{what}");
    assert!(
        worked.0 < trickle && worked.1 < trickle,
        "{what}: {worked:?} commands and statements for {FLOOD} requests"
    );
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
        let (before, begun) = (work_done(&world).await, Instant::now());
        let status = |n: usize| {
            // Every second one asks for a request that nobody ever accepted, made just now.
            let id = mine.get() + u64::try_from(n % 2).unwrap() * (1 + u64::try_from(n).unwrap());
            world.request(Method::GET, &format!("/v1/sales/{sale}/orders/{id}"), "alice")
        };
        let answers = flood(status).await;
        let after = work_done(&world).await;
        let (commands, statements) = (after.0 - before.0, after.1 - before.1);
        let expected = [((200, "P2-R0".to_owned()), FLOOD / 2), ((404, "ORDER_NOT_FOUND".to_owned()), FLOOD / 2)];
        assert_eq!(answers, BTreeMap::from(expected));
        assert!(statements < trickle(begun.elapsed()), "{statements} statements");
        assert!(commands < i64::try_from(FLOOD).unwrap() * 3 / 4, "{commands} commands for {FLOOD} questions");
        let rest = world.second_world(&[Role::Relay, Role::Consumer], &[]).await;
        rest.finish().await;
        world.stop().await;
    });
}
