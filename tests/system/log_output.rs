//! A log that cannot be written, or that stands unread, costs lines and nothing else (S4): no role ends, no purchase waits.

use crate::support::processes::killable::{KillableProcess, ProcessOptions};
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run};
use seckill::dev::ServerKind;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use std::fs::OpenOptions;
use std::process::Stdio;

const DROPPED: &str = "seckill_log_lines_dropped_total";

/// A disk that is full.
fn full_disk() -> Stdio {
    OpenOptions::new().write(true).open("/dev/full").expect("a full disk").into()
}

/// The pipe to a helper that has ended.
fn dead_reader() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

async fn lines_were_dropped(process: &KillableProcess) {
    process.until_metric(DROPPED, |dropped| dropped > 0.0).await;
}

async fn ends_on_sigterm(mut process: KillableProcess) {
    assert_eq!(process.program.terminate().await.0, Some(0), "the exit code");
}

#[test]
fn every_role_starts_and_works_while_its_log_cannot_be_written() {
    run(async {
        let world = World::with(&[], &[]).await;
        let sale = world.sale("unlogged", 10, None).await;
        let roles = Role::ALL.map(|role| {
            world.spawn(role.name(), ProcessOptions { stderr: Some(full_disk()), ..ProcessOptions::default() })
        });
        let [api, ..] = &roles;
        api.serves_buyers().await;
        assert_eq!(world.buy_at(api, sale.as_str(), "alice", None).await, Some(202));
        eventually("her order", async || world.orders(&sale).await == 1).await;
        for role in roles {
            lines_were_dropped(&role).await;
            ends_on_sigterm(role).await;
        }
        world.finish().await;
    });
}

/// Sells before and after Redis was killed, at an api process that cannot write its log.
async fn sells_through_an_outage(name: &str, stderr: Stdio) {
    let mut servers = breakable_servers().await;
    let world = World::on_breakable(&servers, name, &[Role::Relay, Role::Consumer], &[]).await;
    let sale = world.sale(name, 10, Some(1)).await;
    let api = world.spawn("api", ProcessOptions { stderr: Some(stderr), ..ProcessOptions::default() });
    api.serves_buyers().await;
    assert_eq!(world.buy_at(&api, sale.as_str(), "before", None).await, Some(202));
    let redis = servers.server(ServerKind::Redis).unwrap();
    redis.kill().await.unwrap();
    redis.restart().await.unwrap();
    world.redis_is_back().await;
    // 409: a try before it was accepted, and its buyer got no answer.
    let sold = async || matches!(world.buy_at(&api, sale.as_str(), "after", None).await, Some(202 | 409));
    eventually("a purchase is accepted again", sold).await;
    lines_were_dropped(&api).await;
    ends_on_sigterm(api).await;
    sold_twice(&world, &sale).await;
    world.finish().await;
}

async fn sold_twice(world: &World, sale: &SaleId) {
    eventually("both orders", async || world.orders(sale).await == 2).await;
}

#[test]
fn an_api_whose_disk_is_full_sells_on_after_redis_was_killed() {
    run(sells_through_an_outage("full-log", full_disk()));
}

#[test]
fn an_api_whose_logs_reader_is_gone_sells_on_after_redis_was_killed() {
    run(sells_through_an_outage("dead-log", dead_reader()));
}

#[test]
fn a_reader_that_stands_still_costs_lines_but_no_purchase_and_no_orderly_end() {
    run(async {
        let world = World::with(&[Role::Relay, Role::Consumer], &[]).await;
        let sale = world.sale("unread", 1_000_000, None).await;
        let (reader, writer) = std::io::pipe().unwrap();
        let options =
            ProcessOptions { sets: &["log.level=trace"], stderr: Some(writer.into()), ..ProcessOptions::default() };
        let api = world.spawn("api", options);
        api.serves_buyers().await;
        let mut bought = 0;
        while api.metric(DROPPED).await.is_none_or(|dropped| dropped == 0.0) {
            for _ in 0..50 {
                assert_eq!(world.buy_at(&api, sale.as_str(), &format!("b{bought}"), None).await, Some(202), "{bought}");
                bought += 1;
            }
        }
        ends_on_sigterm(api).await;
        drop(reader);
        eventually("all orders", async || world.orders(&sale).await == bought).await;
        world.finish().await;
    });
}

#[test]
fn an_outage_of_redis_is_a_line_now_and_then_that_names_the_server() {
    run(async {
        let mut servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "few-lines", &[], &[]).await;
        let mut api = world.spawn("api", ProcessOptions::default());
        api.serves_buyers().await;
        let redis = servers.server(ServerKind::Redis).unwrap();
        redis.kill().await.unwrap();
        let lines = |log: &str, part: &str| -> Vec<String> {
            log.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
        };
        // A line with a count: the errors between had none.
        let counted = |log: &str| {
            let counts = log.split("errors=").skip(1).filter_map(|rest| rest.split([' ', '\n']).next()?.parse().ok());
            counts.max().unwrap_or(0u64)
        };
        eventually("errors that have no line", async || counted(&api.program.stderr()) > 10).await;
        let log = api.program.stderr();
        let outage = lines(&log, "redis connection");
        assert!(outage.iter().all(|line| line.contains("server=\"127.0.0.1:")), "{outage:#?}");
        redis.restart().await.unwrap();
        world.redis_is_back().await;
        api.program.until_logged("redis answers again").await;
        ends_on_sigterm(api).await;
        world.finish().await;
    });
}
