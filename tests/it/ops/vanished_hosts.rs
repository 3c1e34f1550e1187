//! The host of a server vanishes without a word: connections that stand go dumb, and what is sent on them is still
//! acknowledged. New ones go through, but where a test says otherwise. The roles must give up what is dumb by themselves.

use crate::support::basics::database_kind::connection_ids;
use crate::support::links::link::Link;
use crate::support::processes::own_redis;
use crate::support::processes::replicas::pair;
use crate::support::world::database_sessions::Session;
use crate::support::world::fault_injection::port_of;
use crate::support::world::{SETTLE, World, eventually, pause, run, shared};
use diesel_async::SimpleAsyncConnection;
use seckill::config::{ServerUrl, Settings};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::{Role, Servers};
use seckill::store::mysql::DbError;
use seckill::store::redis::{Between, RedisFault};
use seckill_bench::vanishing_host::VanishingHost;
use std::collections::BTreeSet;
use std::time::Instant;

/// A buyer and the request that was accepted.
struct Bought(String, RequestId);

/// Tries as one buyer after the other until a purchase is accepted.
async fn bought(world: &World, sale: &SaleId, name: &str) -> Bought {
    let deadline = Instant::now() + SETTLE;
    for number in 1.. {
        let user = format!("{name}-{number}");
        let answer = world.buy(sale, &user, 1, None).await;
        if answer.status == 202 {
            return Bought(user, RequestId::parse(&answer.text("request_id")).expect("a request id"));
        }
        assert!(Instant::now() < deadline, "nothing is sold any more: {answer:?}");
        pause().await;
    }
    unreachable!("the numbers do not end");
}

async fn confirmed(world: &World, sale: &SaleId, bought: &Bought) {
    let Bought(user, id) = bought;
    eventually("the order", async || {
        let answer = world.status(sale, user, &id.to_string(), 0).await;
        answer.status == 200 && answer.text("status") == "CONFIRMED"
    })
    .await;
}

/// Sells through the host, which vanishes twice. All roles: an order that landed while the consumer could not mark it in the
/// ledger gets it from P5.
async fn sells_and_lands_again(world: &World, host: &VanishingHost) {
    let sale = world.sale("vanished", 1_000, None).await;
    confirmed(world, &sale, &bought(world, &sale, "before").await).await;
    for time in ["once", "twice"] {
        host.vanish();
        confirmed(world, &sale, &bought(world, &sale, time).await).await;
    }
    // The test's own handles may go through the host, too.
    let redis = &world.servers.redis.health;
    eventually("the test's own handles", async || redis.settings().await.is_ok()).await;
    world.settled(&sale).await;
}

/// A host in front of what `url` names, and the address through it.
async fn before(url: &str) -> (VanishingHost, String) {
    let port = port_of(url);
    let host = VanishingHost::before(port).await.expect("a port");
    let through = url.replace(&format!(":{port}"), &format!(":{}", host.port()));
    (host, through)
}

#[test]
fn a_redis_that_fell_silent_is_given_up_by_the_entry_and_the_relay() {
    run(async {
        let (host, url) = before(&shared().await.urls().redis_url).await;
        let set = ["redis.command_timeout_ms=500", "p2_reserve.deadline_ms=2000"];
        let world = World::on_redis(&url, "vanished-redis", &Role::ALL, &set).await;
        sells_and_lands_again(&world, &host).await;
        world.finish().await;
    });
}

/// The connections of a user to this world's Redis, by their numbers.
async fn connections_of(world: &World, user: &str) -> BTreeSet<String> {
    let (clients, user) = (world.redis(&["CLIENT", "LIST"]).await, format!("user={user}"));
    let of_user = clients.as_str().expect("a text").lines().filter(|line| line.split(' ').any(|field| field == user));
    of_user.filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// While no order lands a consumer has nothing to mark. The first mark must not have to find out that the connection is dumb.
#[test]
fn a_redis_that_fell_silent_is_given_up_by_a_consumer_that_has_nothing_to_mark() {
    run(async {
        let redis = own_redis::start("vanished-idle").await;
        let (host, url) = before(&redis.url()).await;
        let set = ["redis.command_timeout_ms=500"];
        let world = World::on_redis(&redis.url(), "vanished-idle", &[], &set).await;
        // A user of its own shows which connections are the consumer's.
        world.redis(&["ACL", "SETUSER", "consumer", "on", "nopass", "~*", "&*", "+@all"]).await;
        let url = ServerUrl::new(url.replace("redis://", "redis://consumer:any@"));
        let consumer = world.extra_roles(&[Role::Consumer], |settings| settings.redis.url = url);
        let mut dumb = BTreeSet::new();
        eventually("the consumer's connection", async || {
            dumb = connections_of(&world, "consumer").await;
            !dumb.is_empty()
        })
        .await;
        host.vanish();
        eventually("another connection of the consumer", async || {
            let now = connections_of(&world, "consumer").await;
            !now.is_empty() && now.is_disjoint(&dumb)
        })
        .await;
        consumer.stop().await;
        world.finish().await;
    });
}

/// A server has one connection for what has to be on replicas and one for the rest. The second must not wait for its own time-outs.
#[test]
fn one_silent_connection_casts_doubt_on_the_others_of_its_server() {
    run(async {
        let (primary, _replica) = pair("vanished-doubt").await;
        let (host, url) = before(&primary.url()).await;
        let set =
            ["redis.command_timeout_ms=500", "redis.wait_timeout_ms=300", "redis.wait_replicas=1", "redis.shards=2"];
        let world = World::on_redis(&url, "vanished-doubt", &[], &set).await;
        let sale = world.sale("vanished-doubt", 10, None).await;
        let redis = &world.servers.redis;
        let take = async || redis.transfers.take(&sale, Between { source: 0, target: 1 }, 1, 1).await;
        take().await.expect("replicated");
        host.vanish();
        eventually("reads are answered", async || redis.health.settings().await.is_ok()).await;
        let mut faults = Vec::new();
        eventually("writes are answered", async || take().await.map_err(|fault| faults.push(fault)).is_ok()).await;
        let unknown = faults.iter().filter(|fault| matches!(fault, RedisFault::Unknown(_))).count();
        assert_eq!(unknown, 0, "{faults:?}");
        world.finish().await;
    });
}

#[test]
fn a_broker_that_fell_silent_is_given_up_by_the_relay_and_the_consumer() {
    run(async {
        let world = World::with(&[Role::Api], &[]).await;
        let (host, url) = before(world.settings.rabbitmq.url.expose()).await;
        let through = |settings: &mut Settings| settings.rabbitmq.url = ServerUrl::new(url.clone());
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], through);
        sells_and_lands_again(&world, &host).await;
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_database_that_fell_silent_is_given_up_by_the_consumer() {
    run(async {
        let world = World::with(&[Role::Api, Role::Relay], &["mysql.statement_timeout_ms=1000"]).await;
        let (host, url) = before(world.settings.mysql.url.expose()).await;
        // The driver would go past the host, by the server's socket file.
        let url = format!("{url}?prefer_socket=false");
        let through = |settings: &mut Settings| settings.mysql.url = ServerUrl::new(url.clone());
        let rest = world.extra_roles(&[Role::Consumer, Role::Reconcile], through);
        sells_and_lands_again(&world, &host).await;
        rest.stop().await;
        world.finish().await;
    });
}

/// A call that counts has two minutes. It must not wait them out on a silent server that all others have left.
#[test]
fn a_count_ends_when_its_silent_database_is_given_up() {
    run(async {
        let world = World::with(&[], &[]).await;
        let direct = world.settings.mysql.url.expose();
        let hole = Link::before(port_of(direct)).await;
        let urls = [hole.url(direct), direct.to_owned()];
        // The driver would go past the hole, by the server's socket file.
        let urls = urls.map(|url| ServerUrl::new(format!("{url}?prefer_socket=false")));
        let mut settings = (*world.settings).clone();
        settings.mysql.urls = Vec::from(urls).into();
        // Enough for a slow machine to reach the first server, and far less than a call that counts has.
        (settings.mysql.connect_timeout_ms, settings.mysql.statement_timeout_ms) = (10_000, 3_000);
        let db = Servers::new(&settings).expect("handles").db;
        db.ping().await.expect("the first address");
        let counting = db.patient().run("test_count", async |conn| Ok(conn.batch_execute("DO SLEEP(59)").await?));
        let others = async {
            let mut session = Session::open(&world).await;
            let is_running = "INFO LIKE 'DO SLEEP(59)%'";
            eventually("it counts", async || connection_ids(&mut session.0, is_running).await.len() == 1).await;
            hole.loses_answers(true);
            eventually("other calls are answered by the second server", async || db.ping().await.is_ok()).await;
        };
        let (counted, ()) = tokio::join!(tokio::time::timeout(SETTLE, counting), others);
        let error = counted.expect("long before its deadline").expect_err("its server is silent");
        assert!(matches!(error, DbError::Timeout(_)), "{error}");
        world.finish().await;
    });
}
