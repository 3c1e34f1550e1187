//! Sales on a primary that sentinels watch (B6, windows 15 to 17): it is killed, frozen or replaced by one that lags, and
//! everything that was answered as accepted is an order, once.

use crate::support::buyers::retrying_buyers::RetryingBuyers;
use crate::support::buyers::winners::{sells_again, sells_out, winners};
use crate::support::processes::redis_sets::{Node, SentinelSet};
use crate::support::world::clusters::{SOON, cut_off};
use crate::support::world::{World, eventually, run_waiting};
use futures::future::join_all;
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use serde_json::Value;
use std::collections::BTreeSet;

const PROMISED: [&str; 3] = ["redis.wait_replicas=1", "redis.wait_timeout_ms=500", "redis.command_timeout_ms=1000"];
/// As docs/operations.md wants it.
const CAREFUL: [&str; 2] = ["min-replicas-to-write 1", "min-replicas-max-lag 2"];
const STOCK: usize = 500;
/// Buyers at a time.
const LINES: usize = 12;

async fn world_on(set: &SentinelSet, name: &str, settings: &[&str]) -> World {
    World::on_sentinel(set, name, &Role::ALL, settings).await
}

/// Buyers come until nothing is left, while `story` goes on.
async fn sold_out<T>(rush: &RetryingBuyers<'_>, story: impl Future<Output = T>) -> T {
    let lines = (0..LINES).map(|line| rush.line(0, (0..).map(move |n| format!("buyer-{line}-{n}"))));
    tokio::join!(join_all(lines), story).1
}

async fn sold_exactly(rush: &RetryingBuyers<'_>, title: &str) {
    rush.print(title);
    let counted = rush.holds().await.counted;
    assert_eq!(rush.accepted(), STOCK);
    assert_eq!((counted.database_stock, counted.redis_stock), (0, 0), "{counted:?}");
}

#[test]
fn a_master_killed_in_a_crowd_costs_a_pause_and_no_order() {
    run_waiting(async {
        let set = SentinelSet::start(2, 3, &CAREFUL).await;
        let world = world_on(&set, "sentinel-kill", &PROMISED).await;
        let sale = world.sale("kill", i64::try_from(STOCK).unwrap(), Some(1)).await;
        let rush = RetryingBuyers::new(&world, &sale);
        let old = set.master().await;
        sold_out(&rush, async {
            eventually("a load", async || rush.accepted() > STOCK / 5).await;
            old.kill().await;
            rush.mark("the master is killed");
            set.failed_over(old).await;
            let promoted = rush.mark("a replica is promoted");
            eventually("it sells", async || rush.accepted_of(0, promoted, None) > STOCK / 5).await;
            old.restart().await;
            rush.mark("the old master is started again");
        })
        .await;
        set.whole().await;
        assert_eq!(old.info("replication").await["role"], "slave");
        sold_exactly(&rush, "sentinel-kill").await;
        world.finish().await;
    });
}

/// Requests the ledger of one server has.
async fn ledger(world: &World, sale: &SaleId, node: &Node) -> BTreeSet<String> {
    let ids = node.call(&["HKEYS", &world.servers.redis.keys.ledger(0, sale)]).await;
    ids.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn believes(node: &Node, role: &str) -> bool {
    node.info("replication").await.get("role").is_some_and(|own| own == role)
}

/// The master stands still, is replaced, and goes on believing that it is the master. Returns what it accepted then.
async fn frozen_master(name: &str, config: &[&str]) -> usize {
    let set = SentinelSet::start(2, 3, config).await;
    let world = world_on(&set, name, &PROMISED).await;
    let sale = world.sale("freeze", i64::try_from(STOCK).unwrap(), Some(1)).await;
    let rush = RetryingBuyers::new(&world, &sale);
    let old = set.master().await;
    // A process that learns of no other master than this one: its only sentinel will stand still. And its buyers' tokens.
    let silent = &set.sentinels()[2];
    let url = format!("redis-sentinel://127.0.0.1:{}?sentinelServiceName=seckill", silent.port());
    let settings = [&PROMISED[..], &["redis.mode=sentinel"]].concat();
    let urls = (url.as_str(), world.settings.rabbitmq.url.expose(), world.settings.mysql.url.expose());
    let stale = World::on(urls, name, &[Role::Api], &settings).await;
    assert_eq!(stale.servers.redis.servers()[0].0, format!("127.0.0.1:{}", old.port()));
    let mut late = Vec::new();
    for n in 0..20 {
        let user = format!("late-{n}");
        let token = world.token(&sale, &user).await.0;
        late.push((user, token));
    }
    let mut asked = 0;
    let accepted_alone = sold_out(&rush, async {
        eventually("a load", async || rush.accepted() > STOCK / 5).await;
        silent.freeze().await;
        old.freeze().await;
        rush.mark("the master stands still");
        // They go into its socket, and it will find them there.
        let new = set.failed_over(old).await;
        let known = ledger(&world, &sale, new).await;
        let promoted = rush.mark("a replica is promoted");
        eventually("it sells", async || rush.accepted_of(0, promoted, None) > STOCK / 10).await;
        old.thaw().await;
        rush.mark("the old master goes on");
        let alone = ledger(&world, &sale, old).await.difference(&known).count();
        while believes(old, "master").await {
            let (user, token) = &late[asked % late.len()];
            asked += 1;
            let answer = stale.buy(&sale, user, 1, Some(token)).await;
            assert!(matches!(answer.status, 503 | 504), "accepted by a master that was replaced: {answer:?}");
        }
        rush.mark(&format!("it has answered nothing to {asked} buyers"));
        eventually("it knows", async || believes(old, "slave").await).await;
        rush.mark("the old master is a replica");
        alone
    })
    .await;
    silent.thaw().await;
    set.whole().await;
    sold_exactly(&rush, name).await;
    assert_eq!(world.rows("orders", "user_id LIKE 'late-%'").await, 0, "{asked} of them asked");
    stale.stop().await;
    world.finish().await;
    accepted_alone
}

#[test]
fn what_a_replaced_master_accepts_when_it_wakes_is_answered_to_no_buyer() {
    run_waiting(async {
        // It may be stopped just when everybody waits for replicas, and then nothing is in its socket.
        for round in 1..=3 {
            let alone = frozen_master(&format!("sentinel-wakes-{round}"), &[]).await;
            eprintln!("round {round}: accepted after it woke: {alone}");
            if alone > 0 {
                return;
            }
        }
        panic!("it has never accepted what lay in its socket");
    });
}

#[test]
fn a_replaced_master_with_min_replicas_wakes_and_nothing_is_sold_twice() {
    run_waiting(async {
        let alone = frozen_master("sentinel-min", &CAREFUL).await;
        eprintln!("accepted after it woke: {alone}");
    });
}

#[test]
fn one_sentinel_that_stands_still_or_is_dead_hides_no_master() {
    run_waiting(async {
        let set = SentinelSet::start(2, 3, &CAREFUL).await;
        let world = world_on(&set, "sentinel-first", &PROMISED).await;
        let sale = world.sale("first", 40, Some(1)).await;
        assert_eq!(world.buy(&sale, "before", 1, None).await.status, 202);
        // Each of them once: it is not promised who is asked first.
        for (n, sentinel) in set.sentinels().iter().enumerate() {
            let old = set.master().await;
            sentinel.freeze().await;
            old.kill().await;
            set.failed_over(old).await;
            let (user, (token, _)) = (format!("after-{n}"), world.token_again(&sale, &format!("after-{n}")).await);
            let sells = async || world.buy(&sale, &user, 1, Some(&token)).await.status == 202;
            eventually("the new master sells", sells).await;

            sentinel.thaw().await;
            sentinel.kill().await;
            let sets = world.own_sets();
            let sets: Vec<&str> = sets.iter().map(String::as_str).chain(PROMISED).collect();
            let late = world.second_world(&[Role::Api], &sets).await;
            let token = world.token(&sale, &format!("late-{n}")).await.0;
            let sold = late.buy(&sale, &format!("late-{n}"), 1, Some(&token)).await;
            assert_eq!(sold.status, 202, "a process that starts now: {sold:?}");
            late.stop().await;
            sentinel.restart().await;
            old.restart().await;
            set.whole().await;
        }
        assert_eq!(world.settled(&sale).await.counted.ordered, 7);
        world.finish().await;
    });
}

#[test]
fn a_promoted_replica_that_lags_is_frozen_and_rebuilt() {
    run_waiting(async {
        let set = SentinelSet::start(1, 3, &[]).await;
        let world = world_on(&set, "sentinel-lag", &SOON).await;
        let sale = world.sale("lag", 40, Some(1)).await;
        let old = set.master().await;
        let replica = set.nodes().iter().find(|node| node.port() != old.port()).unwrap();
        let mut won = winners(&world, &sale, 0, 0..2).await;
        eventually("the replica has it", async || {
            replica.info("replication").await["slave_repl_offset"]
                == old.info("replication").await["master_repl_offset"]
        })
        .await;
        cut_off(replica, old).await;
        won.extend(winners(&world, &sale, 0, 2..5).await);
        old.kill().await;
        replica.thaw().await;
        assert_eq!(set.failed_over(old).await.port(), replica.port());
        sells_again(&world, &sale, &won, 2).await;
        sells_out(world, &sale, (won.len(), 40)).await;
    });
}
