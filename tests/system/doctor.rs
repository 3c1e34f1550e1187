//! `seckill doctor` on a good set-up and on each deliberately bad one: named, with what to do, exit code 2 (windows 2, 13, 14,
//! 15, 50, 52, 55, 72, 82, 83).

use crate::support::basics::database_kind::DatabaseKind;
use crate::support::processes::programs::call;
use crate::support::world::database_sessions::Session;
use crate::support::world::fault_injection::{breakable_servers, channel};
use crate::support::world::{World, eventually, run_waiting};
use amqprs::channel::{QueueDeclareArguments, QueueDeleteArguments};
use amqprs::{FieldTable, FieldValue, ShortStr};
use diesel_async::SimpleAsyncConnection;
use seckill::roles::Role;
use seckill::store::rabbit::{RabbitConfig, Topology, declare, queue_depths};
use serde_json::Value;

/// Runs the doctor on the servers of `world`: exit code, and its checks.
fn doctor(world: &World, set: &[String]) -> (Option<i32>, Vec<Value>) {
    let s = &world.settings;
    let urls = [
        format!("redis.url={}", s.redis.url.expose()),
        format!("rabbitmq.url={}", s.rabbitmq.url.expose()),
        format!("mysql.url={}", s.mysql.url.expose()),
        format!("redis.prefix={}", s.redis.prefix),
        "p4_persist.retry_delay_ms=200".to_owned(),
        "p4_persist.retry_delay_max_ms=400".to_owned(),
    ];
    let mut args = vec!["--data-dir", "/nonexistent"];
    for set in urls.iter().chain(set) {
        args.extend(["--set", set.as_str()]);
    }
    args.extend(["doctor", "--json"]);
    let (code, out, err) = call(&args);
    let answer: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"));
    (code, answer["checks"].as_array().expect("checks").clone())
}

/// Fails unless the doctor finds exactly this: exit code 2, the check named, what to do said.
fn finds(world: &World, set: &[String], check: &str) {
    let (code, checks) = doctor(world, set);
    let wrong: Vec<&Value> = checks.iter().filter(|line| line["verdict"] == "wrong").collect();
    assert_eq!(code, Some(2), "{check}: {checks:#?}");
    assert!(wrong.len() == 1 && wrong[0]["name"] == check, "{check}: {wrong:#?}");
    for field in ["why", "change"] {
        assert!(!wrong[0][field].as_str().expect("text").is_empty(), "{check}: {wrong:#?}");
    }
}

fn is_well(world: &World) {
    let (code, checks) = doctor(world, &[]);
    let not_fine: Vec<&Value> = checks.iter().filter(|line| line["verdict"] != "fine").collect();
    assert!(code == Some(0) && not_fine.is_empty(), "{code:?} {not_fine:#?}");
}

/// MySQL may be set to find torn pages and mend none. MariaDB takes another value at its start only.
async fn weak_doublewrite(world: &World) {
    const WEAK: &str = "SET GLOBAL innodb_doublewrite = DETECT_ONLY";
    let mut session = Session::open(world).await;
    match DatabaseKind::of(&mut session.0).await {
        DatabaseKind::Mysql => {
            session.run(WEAK).await;
            finds(world, &[], "innodb_doublewrite");
            session.run("SET GLOBAL innodb_doublewrite = ON").await;
        }
        DatabaseKind::Mariadb => {
            let refused = session.0.batch_execute(WEAK).await.expect_err("set while it runs").to_string();
            assert!(refused.contains("read only variable"), "{refused}");
        }
    }
}

/// Settings that `redis.wait_replicas = 0` does not ask for: now in the way, and before a sale.
async fn what_stops_the_writes_is_named(world: &World) {
    world.config_set("min-replicas-to-write", "1").await;
    finds(world, &[], "takes writes");
    let (_, checks) = doctor(world, &[]);
    let line = checks.iter().find(|line| line["name"] == "takes writes").expect("a line");
    assert!(line["value"].as_str().is_some_and(|value| value.contains("NOREPLICAS")), "{line:#}");
    assert!(warned(&checks).iter().any(|name| name.starts_with("min-replicas-to-write of ")), "{checks:#?}");
    world.config_set("min-replicas-to-write", "0").await;
    // As the packaged redis.conf has it.
    world.config_set("save", "3600 1 300 100").await;
    let (code, checks) = doctor(world, &[]);
    let named = matches!(warned(&checks)[..], [name] if name.starts_with("snapshots of "));
    assert!(code == Some(0) && named, "{checks:#?}");
    world.config_set("stop-writes-on-bgsave-error", "no").await;
    is_well(world);
    world.config_set("save", "").await;
    world.config_set("stop-writes-on-bgsave-error", "yes").await;
}

fn warned(checks: &[Value]) -> Vec<&str> {
    let warnings = checks.iter().filter(|line| line["verdict"] == "warning");
    warnings.map(|line| line["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_good_set_up_is_well_and_each_bad_setting_is_named() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "doctor", &Role::ALL, &[]).await;
        eventually("the queues have their consumers", async || {
            queue_depths(&world.servers.rabbit).await.is_ok_and(|depths| depths.iter().any(|depth| depth.consumers > 0))
        })
        .await;
        is_well(&world);
        for (name, bad, good) in [
            ("maxmemory-policy", "allkeys-lru", "noeviction"),
            ("appendonly", "no", "yes"),
            ("appendfsync", "everysec", "always"),
            ("no-appendfsync-on-rewrite", "yes", "no"),
        ] {
            world.config_set(name, bad).await;
            finds(&world, &[], name);
            world.config_set(name, good).await;
        }
        finds(&world, &["redis.wait_replicas=1".to_owned()], "connected replicas");
        what_stops_the_writes_is_named(&world).await;

        for (name, bad, good) in [("innodb_flush_log_at_trx_commit", "2", "1"), ("read_only", "1", "0")] {
            world.sql(&format!("SET GLOBAL {name} = {bad}")).await;
            finds(&world, &[], name);
            let probes = world.probed(Role::Consumer).await;
            let mysql = probes.iter().find(|probe| probe.name == "mysql").expect("a probe");
            assert!(mysql.ok && mysql.warnings.iter().any(|warning| warning.contains(name)), "{name}: {mysql:?}");
            world.sql(&format!("SET GLOBAL {name} = {good}")).await;
        }
        weak_doublewrite(&world).await;
        world.sql("SET GLOBAL max_allowed_packet = 1048576").await;
        let (code, checks) = doctor(&world, &[]);
        let warned = checks.iter().any(|line| line["name"] == "max_allowed_packet" && line["verdict"] == "warning");
        assert!(code == Some(0) && warned, "slow, not wrong: {checks:#?}");
        world.sql("SET GLOBAL max_allowed_packet = 16777216").await;
        world.sql("ALTER TABLE sales DROP CONSTRAINT ck_sales_stock").await;
        finds(&world, &[], "ck_sales_stock");
        world.sql("ALTER TABLE sales ADD CONSTRAINT ck_sales_stock CHECK (stock >= 0)").await;
        world.sql("ALTER TABLE request_outcome MODIFY sale_id VARCHAR(64) NOT NULL").await;
        finds(&world, &[], "id columns that are not VARBINARY");
        world.sql("ALTER TABLE request_outcome MODIFY sale_id VARBINARY(64) NOT NULL").await;
        world.sql("CREATE DATABASE IF NOT EXISTS doctor_empty").await;
        let empty = servers.urls().mysql_url.replace("/seckill", "/doctor_empty");
        finds(&world, &[format!("mysql.url={empty}")], "migrations");

        let gone = doctor(&world, &["redis.url=redis://127.0.0.1:1".to_owned()]);
        assert_eq!(gone.0, Some(1), "away is not wrong: {:#?}", gone.1);
        is_well(&world);
        world.finish().await;
    });
}

/// Makes the first order queue again, as it should be but for one argument (`None`: without it).
async fn order_queue_with(config: &RabbitConfig, argument: &str, value: Option<FieldValue>) {
    let topology = Topology::new(config);
    let mut arguments = vec![
        ("x-queue-type", FieldValue::from("quorum")),
        ("x-delivery-limit", FieldValue::l(1_000)),
        ("x-dead-letter-strategy", FieldValue::from("at-least-once")),
        ("x-overflow", FieldValue::from("reject-publish")),
        ("x-dead-letter-exchange", FieldValue::from(topology.dlq())),
    ];
    arguments.retain(|(name, _)| *name != argument);
    arguments.extend(value.map(|value| (argument, value)));
    let mut table = FieldTable::new();
    for (name, value) in arguments {
        // A classic queue knows none of these two.
        let quorum_only = ["x-delivery-limit", "x-dead-letter-strategy"].contains(&name);
        if !(argument == "x-queue-type" && quorum_only) {
            table.insert(ShortStr::try_from(name).expect("a short name"), value);
        }
    }
    let (connection, channel) = channel(config).await;
    let queue = topology.orders_queue(0);
    channel.queue_delete(QueueDeleteArguments::new(&queue)).await.expect("deleted");
    let declare = QueueDeclareArguments::durable_client_named(&queue).arguments(table).finish();
    channel.queue_declare(declare).await.expect("declared");
    connection.close().await.expect("closed");
}

#[test]
fn a_queue_with_other_arguments_is_named() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "doctor-queues", &[], &[]).await;
        for (at, (argument, value)) in [
            ("x-overflow", Some(FieldValue::from("drop-head"))),
            ("x-dead-letter-strategy", Some(FieldValue::from("at-most-once"))),
            ("x-dead-letter-strategy", None),
            ("x-dead-letter-exchange", None),
            ("x-delivery-limit", Some(FieldValue::l(20))),
            ("x-delivery-limit", None),
            ("x-queue-type", Some(FieldValue::from("classic"))),
        ]
        .into_iter()
        .enumerate()
        {
            let prefix = format!("q{at}");
            let config = RabbitConfig { prefix: prefix.clone(), ..world.servers.rabbit.clone() };
            declare(&config).await.expect("as they should be");
            order_queue_with(&config, argument, value).await;
            let (code, checks) = doctor(&world, &[format!("rabbitmq.prefix={prefix}")]);
            let wrong = checks.iter().find(|line| line["name"] == "queues and exchanges").expect("a line");
            assert_eq!((code, &wrong["verdict"]), (Some(2), &Value::from("wrong")), "{argument}: {checks:#?}");
            let value = wrong["value"].as_str().unwrap();
            assert!(value.contains(&format!("{prefix}.orders.0")), "{argument}: {wrong:#?}");
        }
        world.finish().await;
    });
}
