//! `mysql.urls`: the roles write to the server that is the primary, follow a fail-over, and follow it back.

use crate::support::processes::database_pair::DatabasePair;
use crate::support::processes::doctor::doctor;
use crate::support::world::fault_injection::sql;
use crate::support::world::{SETTLE, World, eventually, pause, run_waiting, shared};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role;
use std::time::Instant;

/// Buys one unit after the other until `accepted` of them are; what is refused or unknown in between is another buyer's.
async fn buys(world: &World, sale: &SaleId, accepted: usize) -> Vec<(String, RequestId)> {
    let (mut bought, deadline) = (Vec::new(), Instant::now() + SETTLE);
    for number in 0.. {
        if bought.len() == accepted {
            return bought;
        }
        let user = format!("u{number}");
        let answer = world.buy(sale, &user, 1, None).await;
        if answer.status == 202 {
            bought.push((user, RequestId::parse(&answer.text("request_id")).expect("a request id")));
        }
        assert!(Instant::now() < deadline, "nothing is sold any more: {answer:?}");
        pause().await;
    }
    unreachable!("the numbers do not end");
}

async fn world_on(urls: &str, name: &str) -> World {
    let servers = shared().await;
    servers.add_vhost(name).await.expect("a virtual host");
    let others = servers.urls();
    let amqp = others.amqp_url.replace("%2f", name);
    let set = ["mysql.statement_timeout_ms=1000", "mysql.connect_timeout_ms=1000"];
    World::on((&others.redis_url, &amqp, urls), name, &Role::ALL, &set).await
}

async fn confirmed(world: &World, sale: &SaleId, bought: &[(String, RequestId)]) {
    for (user, id) in bought {
        eventually("the order", async || {
            let answer = world.status(sale, user, &id.to_string(), 0).await;
            answer.status == 200 && answer.text("status") == "CONFIRMED"
        })
        .await;
    }
}

#[test]
fn a_demoted_database_is_left_and_followed_back_under_a_flow_of_orders() {
    run_waiting(async {
        let mut pair = DatabasePair::start("failover").await;
        let world = world_on(&pair.urls(), "failover").await;
        let sale = world.sale("failover", 10_000, None).await;
        confirmed(&world, &sale, &buys(&world, &sale, 20).await).await;
        for (from, to) in [(0, 1), (1, 0)] {
            let fail_over = async {
                let before = pair.number(to, "SELECT COUNT(*) AS n FROM orders").await;
                pair.fail_over(from, to).await;
                eventually("orders on the new primary", async || {
                    pair.number(to, "SELECT COUNT(*) AS n FROM orders").await > before + 20
                })
                .await;
            };
            let (bought, ()) = tokio::join!(buys(&world, &sale, 200), fail_over);
            confirmed(&world, &sale, &bought).await;
            eventually("no connection of a role to the demoted server", async || {
                let of_roles = "SELECT COUNT(*) AS n FROM information_schema.processlist WHERE USER = 'app'";
                pair.number(from, of_roles).await == 0
            })
            .await;
        }
        // Killed while it takes writes: the other one has all of it, or P5 lands it again.
        let last = buys(&world, &sale, 20).await;
        confirmed(&world, &sale, &last).await;
        while pair.number(1, "SELECT COUNT(*) AS n FROM orders").await < 440 {
            pause().await;
        }
        pair.servers[0].kill().await.expect("killed");
        pair.takes_writes(1, true).await;
        confirmed(&world, &sale, &buys(&world, &sale, 20).await).await;
        assert_eq!(pair.number(1, "SELECT COUNT(*) AS n FROM orders").await, 460);
        world.finish().await;
    });
}

#[test]
fn dead_and_read_only_addresses_are_passed_over_and_the_doctor_names_them() {
    run_waiting(async {
        let pair = DatabasePair::start("passed-over").await;
        let dead = pair.url(0).replace(&pair.servers[0].port().to_string(), "1");
        let urls = [dead.as_str(), &pair.url(1), &pair.url(0)].join(",");
        let world = world_on(&urls, "passed-over").await;
        let sale = world.sale("passed", 100, None).await;
        confirmed(&world, &sale, &buys(&world, &sale, 5).await).await;
        let settings = [format!("mysql.urls={urls}"), format!("redis.url={}", world.settings.redis.url.expose())];
        let ports = [1, pair.servers[1].port(), pair.servers[0].port()];
        let named = |port: &u16| format!("mysql address 127.0.0.1:{port}");
        let (_, found, text) = doctor(&settings);
        assert!(found("warning").contains(&named(&ports[0])), "{text}");
        assert!(ports[1..].iter().all(|port| found("fine").contains(&named(port))), "{text}");
        assert!(text.contains("read-only") && text.contains("takes writes"), "{text}");
        assert_eq!(found("wrong"), Vec::<String>::new(), "{text}");
        // The one that a fail-over would promote may lose what it commits. The one in use is well.
        sql(&pair.root(1), "SET GLOBAL innodb_flush_log_at_trx_commit = 2").await;
        let (code, found, text) = doctor(&settings);
        let weak = format!("mysql innodb_flush_log_at_trx_commit of 127.0.0.1:{}", ports[1]);
        assert_eq!((found("wrong"), code), (vec![weak], Some(2)), "{text}");
        sql(&pair.root(1), "SET GLOBAL innodb_flush_log_at_trx_commit = 1").await;
        // Two that take writes are no pair any more.
        pair.takes_writes(1, true).await;
        let (code, found, text) = doctor(&settings);
        assert_eq!(found("wrong"), ["mysql addresses that take writes, without Galera"], "{text}");
        assert_eq!(code, Some(2));
        pair.takes_writes(1, false).await;
        world.finish().await;
    });
}

#[test]
fn doctor_sees_a_database_whose_commits_wait_for_no_replica_any_more() {
    run_waiting(async {
        let pair = DatabasePair::start("semisync").await;
        let words = pair.semi_synchronous().await;
        let complains = || {
            let (_, found, text) = doctor(&[format!("mysql.url={}", pair.url(0))]);
            (found("warning").contains(&"mysql semi-synchronous replication".to_owned()), text)
        };
        eventually("the replica acknowledges", async || !complains().0).await;
        let (_, text) = complains();
        assert!(text.contains("semi-synchronous replication"), "it is checked: {text}");
        sql(&pair.root(1), words.stop).await;
        eventually("no replica acknowledges", async || complains().0).await;
    });
}
