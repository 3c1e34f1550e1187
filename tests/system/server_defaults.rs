//! A database whose server-wide defaults are others than ours: what a session can set is set, what it cannot is named by
//! `seckill doctor` and is an outage, not the fault of an order.

use crate::support::processes::doctor::doctor;
use crate::support::processes::programs::scratch;
use crate::support::world::fault_injection::sql;
use crate::support::world::{World, eventually, run_waiting, shared};
use seckill::dev::ports::free_port;
use seckill::dev::{Server, mariadb};
use seckill::roles::Role;
use seckill::store::mysql::migrate;

/// Each of them stopped something once.
const DEFAULTS: &str = "SET GLOBAL autocommit = 0; SET GLOBAL completion_type = 'CHAIN'; SET GLOBAL sql_safe_updates = 1; \
    SET GLOBAL sql_select_limit = 7; SET GLOBAL unique_checks = 0; SET GLOBAL max_join_size = 5; SET GLOBAL sql_big_selects = 0; \
    SET GLOBAL sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'; SET GLOBAL lc_messages = 'de_DE'; SET GLOBAL TRANSACTION READ ONLY";

async fn database(name: &str, options: &[&str]) -> Server {
    let dir = scratch(name);
    std::fs::remove_dir_all(&dir).ok();
    mariadb::start_with_options(&dir, free_port().expect("a port"), options).await.expect("a database")
}

/// A world on this database, and on the broker and the Redis that all share.
async fn world_on(mysql_url: &str, name: &str, roles: &[Role]) -> World {
    // So that the tables which other worlds are copied from are read where answers are whole.
    World::with(&[], &[]).await.stop().await;
    drop(migrate::migrate(mysql_url).await.expect("migrations"));
    let servers = shared().await;
    servers.add_vhost(name).await.expect("a virtual host");
    let urls = servers.urls();
    World::on((&urls.redis_url, &urls.amqp_url.replace("%2f", name), mysql_url), name, roles, &[]).await
}

fn settings_of(world: &World) -> Vec<String> {
    let s = &world.settings;
    vec![
        format!("redis.url={}", s.redis.url.expose()),
        format!("redis.prefix={}", s.redis.prefix),
        format!("rabbitmq.url={}", s.rabbitmq.url.expose()),
        format!("mysql.url={}", s.mysql.url.expose()),
    ]
}

#[test]
fn defaults_of_the_server_change_nothing_of_what_the_roles_do() {
    run_waiting(async {
        let server = database("defaults", &[]).await;
        sql(&server.url(), DEFAULTS).await;
        let url = server.url().replace("/seckill", "/defaults");
        assert!(migrate::migrate(&url).await.expect("migrations").len() > 7, "all of them");
        let mut world = world_on(&url, "defaults", &[Role::Api]).await;
        let sale = world.sale("defaults", 100, Some(1)).await;
        for user in 0..9 {
            world.bought(&sale, &format!("lost-{user}")).await;
        }
        world.lose_the_outbox().await;
        world.stop_roles().await;
        world.start_roles(&Role::ALL).await;
        for user in 0..9 {
            world.bought(&sale, &format!("sold-{user}")).await;
        }
        eventually("all land, half of them by P5", async || world.orders(&sale).await == 18).await;
        let last = "consistent = 1 AND run_id = (SELECT MAX(run_id) FROM audit_runs)";
        eventually("a consistent round of P5", async || world.rows("audit_runs", last).await == 1).await;
        // The end of each round, which safe updates refused.
        assert_eq!(world.servers.rows.register.close_settled("test").await, Ok(0));
        assert!(world.audit(&sale, seckill::p5_reconcile::Window::Now).await.consistent());
        let (code, found, text) = doctor(&settings_of(&world));
        assert!(code == Some(0) && found("wrong").is_empty(), "{text}");
        world.finish().await;
    });
}

#[test]
fn a_binary_log_of_statements_is_named_and_is_an_outage_that_costs_no_order_its_attempts() {
    run_waiting(async {
        let server = database("statements", &["--server-id=1", "--log-bin=binlog", "--binlog-format=ROW"]).await;
        let mut world = world_on(&server.url(), "statements", &[Role::Api]).await;
        let sale = world.sale("statements", 100, Some(1)).await;
        for user in 0..5 {
            world.bought(&sale, &format!("u{user}")).await;
        }
        sql(&server.url(), "SET GLOBAL binlog_format = 'STATEMENT'").await;
        let (code, found, text) = doctor(&settings_of(&world));
        let named = found("wrong").contains(&"mysql binlog_format".to_owned());
        assert!(code == Some(2) && named && text.contains("SET GLOBAL binlog_format = 'ROW'"), "{text}");
        world.stop_roles().await;
        // Sessions of before write rows; the roles' own are new.
        world.start_roles(&Role::ALL).await;
        eventually("the breaker opens", async || {
            seckill::telemetry::render().contains("seckill_p4_persist_breaker_open 1")
        })
        .await;
        assert_eq!((world.orders(&sale).await, world.rows("failed_request", "TRUE").await), (0, 0));
        sql(&server.url(), "SET GLOBAL binlog_format = 'ROW'").await;
        eventually("all land", async || world.orders(&sale).await == 5).await;
        assert_eq!(world.rows("failed_request", "TRUE").await, 0, "none was parked");
        world.finish().await;
    });
}

#[test]
fn a_database_at_an_ipv6_address_is_reached_and_one_that_is_not_there_is_named() {
    run_waiting(async {
        let server = database("ipv6", &["--bind-address=127.0.0.1,::1"]).await;
        let maker = "CREATE USER IF NOT EXISTS 'root'@'::1'; GRANT ALL PRIVILEGES ON *.* TO 'root'@'::1'";
        sql(&server.url(), maker).await;
        let url = server.url().replace("127.0.0.1", "[::1]");
        assert!(!migrate::migrate(&url).await.expect("migrations over IPv6").is_empty());
        let (_, found, text) = doctor(&[
            "redis.url=redis://127.0.0.1:1".to_owned(),
            "rabbitmq.url=amqp://127.0.0.1:1".to_owned(),
            format!("mysql.url={url}"),
        ]);
        assert!(!found("away").iter().any(|line| line.starts_with("mysql")), "{text}");
        let (_, found, text) = doctor(&["mysql.url=mysql://root@[::1]:1/seckill".to_owned()]);
        assert!(found("away").contains(&"mysql answers".to_owned()) && text.contains("[::1]:1: "), "{text}");
    });
}
