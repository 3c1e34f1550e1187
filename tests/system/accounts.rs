//! The accounts of docs/operations.md, made by its very commands (A11): they suffice for a whole sale, for the audit, for
//! trimming and closing, and for nothing that is not theirs.

use crate::support::basics::documented_commands::{commands, redis_account};
use crate::support::basics::raw_commands::try_redis_all;
use crate::support::processes::programs::call;
use crate::support::world::fault_injection::{breakable_servers, channel, run_in_broker, sql, try_sql};
use crate::support::world::{World, eventually, run_waiting};
use amqprs::channel::{QueueDeclareArguments, QueueDeleteArguments};
use seckill::dev::PrivateServers;
use seckill::domain::operator::{ActTarget, Actor, Operation, OperatorAct};
use seckill::roles::Role;
use seckill::store::rabbit::{RabbitConfig, Topology};
use serde_json::Value;

/// Does what `rabbitmqctl` would, in the node itself: the command line tool needs a port mapper, and there is none here.
async fn rabbitmqctl(servers: &PrivateServers, command: &str) {
    let words: Vec<&str> = command.split(' ').collect();
    let text = |word: &str| format!("<<\"{}\">>", word.trim_matches('\'').replace('\\', "\\\\"));
    let program = match &words[..] {
        ["rabbitmqctl", "add_vhost", name] => return servers.add_vhost(name).await.expect("a virtual host"),
        ["rabbitmqctl", "add_user", user, password] => {
            format!("rabbit_auth_backend_internal:add_user({}, {}, <<\"guest\">>).\n", text(user), text(password))
        }
        ["rabbitmqctl", "set_permissions", "-p", vhost, user, configure, write, read] => {
            let rights = [user, vhost, configure, write, read].map(|word| text(word)).join(", ");
            format!("rabbit_auth_backend_internal:set_permissions({rights}, <<\"guest\">>).\n")
        }
        _ => panic!("{command}: not a command this test knows"),
    };
    run_in_broker(servers, &program).await;
}

/// URLs of the accounts on these servers; `who` is `seckill` or `seckill_setup`.
fn urls(servers: &PrivateServers, who: &str, password: &str) -> [String; 3] {
    let urls = servers.urls();
    let login = format!("{who}:{password}@");
    [
        urls.redis_url.replacen("//", &format!("//seckill:{password}@"), 1),
        urls.amqp_url.replace("guest:guest@", &login).replace("%2f", "seckill"),
        urls.mysql_url.replace("root@", &login),
    ]
}

async fn redis_as_seckill(redis: &str, command: &[&str]) -> Result<(), String> {
    let address = redis.rsplit_once('@').expect("a login").1;
    let commands: [&[&str]; 2] = [&["AUTH", "seckill", "PASSWORD"], command];
    try_redis_all(&format!("redis://{address}"), &commands).await.map(drop).map_err(|error| error.to_string())
}

#[test]
fn the_accounts_of_the_manual_suffice_and_may_do_nothing_else() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let root = servers.urls();
        crate::support::world::fault_injection::redis(&root.redis_url, &["FLUSHALL"]).await;
        let account = redis_account("seckill");
        crate::support::world::fault_injection::redis(
            &root.redis_url,
            &account.iter().map(String::as_str).collect::<Vec<_>>(),
        )
        .await;
        for command in commands("rabbitmq-accounts") {
            rabbitmqctl(&servers, &command).await;
        }
        let forget = "DROP DATABASE IF EXISTS seckill; DROP USER IF EXISTS seckill@'%'; DROP USER IF EXISTS seckill_setup@'%'; DROP USER IF EXISTS seckill_forget@'%'";
        sql(&root.mysql_url.replace("/seckill", "/mysql"), forget).await;
        for command in commands("mysql-setup") {
            sql(&root.mysql_url.replace("/seckill", "/mysql"), &command).await;
        }
        let setup = urls(&servers, "seckill_setup", "SETUP_PASSWORD");
        let done = |command: &str| {
            let (amqp, mysql) = (format!("rabbitmq.url={}", setup[1]), format!("mysql.url={}", setup[2]));
            let (quick, longest) = ("p4_persist.retry_delay_ms=200", "p4_persist.retry_delay_max_ms=400");
            let sets = ["--set", &amqp, "--set", &mysql, "--set", quick, "--set", longest];
            let args = [&["--data-dir", "/nonexistent"], &sets[..], &[command]].concat();
            let (code, out, err) = call(&args);
            assert_eq!(code, Some(0), "{command}: {out}{err}");
        };
        done("migrate");
        done("topology");
        for command in commands("mysql-account") {
            sql(&root.mysql_url, &command).await;
        }

        let [redis, amqp, mysql] = urls(&servers, "seckill", "PASSWORD");
        let set = [
            "rabbitmq.declare=false",
            // Else P5 would persist what the broker refuses to carry.
            "p5_reconcile.compensate=manual",
            "p1_entry.token_ttl_s=1",
            "p5_reconcile.ledger_retention_s=6",
            "p5_reconcile.interval_ms=200",
        ];
        let world = World::on((&redis, &amqp, &mysql), "seckill", &Role::ALL, &set).await;
        sells_trims_and_closes(&world).await;
        doctor_is_content(&world);
        for command in commands("mysql-forget") {
            sql(&root.mysql_url, &command).await;
        }
        forgets_with_its_own_account_only(&world, &urls(&servers, "seckill_forget", "FORGET_PASSWORD")[2]).await;
        refuses_the_rest(&world, &redis, &mysql).await;
        world.finish().await;
    });
}

/// Everything that the roles and the commands do in the life of a sale.
async fn sells_trims_and_closes(world: &World) {
    let sale = world.sale("least", 10, Some(1)).await;
    for buyer in ["ann", "bob", "cid"] {
        let answer = world.buy(&sale, buyer, 1, None).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        let status = world.status(&sale, buyer, &answer.text("request_id"), 30).await;
        assert_eq!(status.text("status"), "CONFIRMED", "{status:?}");
    }
    world.sale_control().pause(&sale).await.expect("paused");
    world.sale_control().resume(&sale).await.expect("resumed");
    assert_eq!(world.settled(&sale).await.counted.ordered, 3);
    let redis = &world.servers.redis;
    let left = async || redis.ledger.page(&sale, 0, "0", 100).await.expect("the ledger").records.len();
    eventually("the records are forgotten", async || left().await == 0).await;
    assert_eq!(world.sale_control().reclaim(&sale).await.expect("asked"), None, "nothing failed");
    let close = OperatorAct::new(&Actor::at_the_terminal("ann"), Operation::SaleClose, ActTarget::Sale(sale.clone()));
    world.servers.rows.acts.record(&[close]).await.expect("written down");
    world.sale_control().close(&sale).await.expect("closed");
    eventually("the closed sale's keys are gone", async || {
        redis.sale_keys.meta(&sale, 0).await.expect("redis").is_none()
    })
    .await;
}

fn doctor_is_content(world: &World) {
    let mut args = vec!["--data-dir".to_owned(), "/nonexistent".to_owned()];
    let sets = [
        format!("redis.url={}", world.settings.redis.url.expose()),
        format!("rabbitmq.url={}", world.settings.rabbitmq.url.expose()),
        format!("mysql.url={}", world.settings.mysql.url.expose()),
        "rabbitmq.declare=false".to_owned(),
        "p4_persist.retry_delay_ms=200".to_owned(),
        "p4_persist.retry_delay_max_ms=400".to_owned(),
    ];
    args.extend(sets.into_iter().flat_map(|set| ["--set".to_owned(), set]));
    args.extend(["doctor".to_owned(), "--json".to_owned()]);
    let (code, out, err) = call(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{out}{err}");
    let answer: Value = serde_json::from_str(&out).expect("json");
    let checks = answer["checks"].as_array().expect("checks");
    let of = |name: &'static str| checks.iter().filter(move |line| line["name"] == name);
    assert!(of("rights of the account").count() == 3, "one of each server: {checks:#?}");
    assert!(of("rights of the account").all(|line| line["value"] == "all that are needed"), "{checks:#?}");
    assert!(
        of("account").all(|line| line["value"].as_str().is_some_and(|value| value.starts_with("seckill"))),
        "{checks:#?}"
    );
    assert!(!out.contains("which may do everything"), "{out}");
}

/// The account that sells cannot change what people did.
async fn forgets_with_its_own_account_only(world: &World, mysql: &str) {
    let forget = ["buyer", "forget", "ann", "--reason", "asked"];
    let refused = world.cli(&forget).exits(1);
    assert!(refused.err.contains("may not update") && refused.err.contains("operator_acts.target_id"), "{refused:?}");
    let mut args = world.sets();
    args.extend(["--set".to_owned(), format!("mysql.url={mysql}")]);
    args.extend(forget.map(str::to_owned));
    let (code, out, err) = call(&args.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(code, Some(0), "{out}{err}");
    assert_eq!(world.rows("orders", "user_id = 'ann'").await, 0);
    assert_eq!(world.rows("orders", "user_id LIKE 'forgotten-%'").await, 1);
}

async fn refuses_the_rest(world: &World, redis: &str, mysql: &str) {
    for command in [
        &["FLUSHALL"][..],
        &["KEYS", "*"],
        &["CONFIG", "SET", "appendonly", "no"],
        &["GET", "other:key"],
        &["SET", "other:key", "x"],
        &["ACL", "SETUSER", "more", "on"],
        &["SHUTDOWN"],
    ] {
        let refused = redis_as_seckill(redis, command).await.expect_err("refused");
        assert!(refused.contains("NOPERM"), "{command:?}: {refused}");
    }
    redis_as_seckill(redis, &["GET", "seckill:{0}:none"]).await.expect("its own prefix");

    for statement in [
        "DELETE FROM orders",
        "DELETE FROM request_outcome",
        "DELETE FROM sales",
        "DELETE FROM operator_acts",
        "UPDATE operator_acts SET actor_name = 'nobody'",
        "UPDATE closed_findings SET reason = 'none'",
        "UPDATE sale_epochs SET number = 0",
        "DROP TABLE orders",
        "ALTER TABLE sales DROP CONSTRAINT ck_sales_stock",
        "CREATE TABLE more (id INT)",
        "SET GLOBAL innodb_flush_log_at_trx_commit = 0",
        "SELECT * FROM mysql.user",
        "CREATE DATABASE more",
    ] {
        let refused = try_sql(mysql, statement).await.expect_err(statement).to_string();
        assert!(refused.to_lowercase().contains("denied"), "{statement}: {refused}");
    }
    let config = &world.servers.rabbit;
    assert!(!may_declare(config, "seckill.more").await, "no queue of its own");
    assert!(!may_declare(config, "other.queue").await, "no queue of others");
    let (_connection, deleting) = channel(config).await;
    let queue = Topology::new(config).orders_queue(0);
    assert!(deleting.queue_delete(QueueDeleteArguments::new(&queue)).await.is_err(), "no order queue is deleted");
}

async fn may_declare(config: &RabbitConfig, queue: &str) -> bool {
    let (_connection, channel) = channel(config).await;
    channel.queue_declare(QueueDeclareArguments::durable_client_named(queue)).await.is_ok()
}
