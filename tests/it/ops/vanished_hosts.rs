//! The host of a server vanishes without a word: connections that stand go dumb, and what is sent on them is still
//! acknowledged. New ones go through. The roles must give up what is dumb by themselves.

use crate::support::fault_injection::port_of;
use crate::support::shared_servers::Tenant;
use crate::support::world::{SETTLE, World, eventually, pause, run, shared};
use seckill::dev::ServerKind;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role;
use seckill_bench::vanishing_host::VanishingHost;
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

/// Everything goes through the host of one server, which vanishes twice. All roles: an order that landed while the consumer could not
/// mark it in the ledger is told by P5.
async fn sells_and_lands_again(kind: ServerKind, set: &[&str]) {
    let name = format!("vanished-{}", kind.name());
    let tenant = Tenant::new(&name).await;
    let redis_url = shared().await.urls().redis_url;
    let mut urls = [redis_url, tenant.amqp_url.clone(), tenant.mysql_url.clone()];
    let url = match kind {
        ServerKind::Redis => &mut urls[0],
        ServerKind::Rabbitmq => &mut urls[1],
        ServerKind::Mysql => &mut urls[2],
    };
    let port = port_of(url);
    let host = VanishingHost::before(port).await.expect("a port");
    *url = url.replace(&format!(":{port}"), &format!(":{}", host.port()));
    let world = World::on((&urls[0], &urls[1], &urls[2]), &name, &Role::ALL, set).await;
    let sale = world.sale("vanished", 1_000, None).await;
    confirmed(&world, &sale, &bought(&world, &sale, "before").await).await;
    for time in ["once", "twice"] {
        host.vanish();
        confirmed(&world, &sale, &bought(&world, &sale, time).await).await;
    }
    // The test's own handles go through the host, too.
    let servers = &world.servers;
    eventually("the test's own handles", async || {
        servers.redis.health.settings().await.is_ok() && servers.db.ping().await.is_ok()
    })
    .await;
    world.finish().await;
}

#[test]
fn a_redis_that_fell_silent_is_given_up_by_the_entry_and_the_relay() {
    run(async {
        let set = ["redis.command_timeout_ms=500", "p2_reserve.deadline_ms=2000"];
        sells_and_lands_again(ServerKind::Redis, &set).await;
    });
}

#[test]
fn a_broker_that_fell_silent_is_given_up_by_the_relay_and_the_consumer() {
    run(async { sells_and_lands_again(ServerKind::Rabbitmq, &[]).await });
}

#[test]
fn a_database_that_fell_silent_is_given_up_by_the_consumer_and_the_entry() {
    run(async { sells_and_lands_again(ServerKind::Mysql, &["mysql.statement_timeout_ms=1000"]).await });
}
