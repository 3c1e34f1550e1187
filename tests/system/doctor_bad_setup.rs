//! `seckill doctor` on the worst set-up there is: everything is named at once, with what to do (windows 2, 13, 14, 72), and
//! rights that an account lacks.

use crate::support::processes::doctor::doctor;
use crate::support::world::fault_injection::{breakable_servers, redis, run_in_broker, sql};
use crate::support::world::{World, run_waiting};
use seckill::dev::ServerUrls;
use seckill::store::rabbit::declare;

/// Bad and good values of Redis.
const BAD: [(&str, &str, &str); 4] = [
    ("appendonly", "no", "yes"),
    ("appendfsync", "everysec", "always"),
    ("no-appendfsync-on-rewrite", "yes", "no"),
    ("maxmemory-policy", "allkeys-lru", "noeviction"),
];
const WEAK: [&str; 10] = ["ACL", "SETUSER", "weak", "reset", "on", ">pw", "~worst:*", "+@read", "+info", "+config|get"];

async fn make_everything_wrong(urls: &ServerUrls) {
    for (name, bad, _) in BAD {
        redis(&urls.redis_url, &["CONFIG", "SET", name, bad]).await;
    }
    redis(&urls.redis_url, &WEAK).await;
    let worse = "SET GLOBAL innodb_flush_log_at_trx_commit = 2; SET GLOBAL max_allowed_packet = 1048576; \
                 SET GLOBAL sql_mode = ''; CREATE DATABASE IF NOT EXISTS worst_empty";
    sql(&urls.mysql_url, worse).await;
}

async fn make_everything_right(urls: &ServerUrls) {
    for (name, _, good) in BAD {
        redis(&urls.redis_url, &["CONFIG", "SET", name, good]).await;
    }
    redis(&urls.redis_url, &["ACL", "DELUSER", "weak"]).await;
    let right = "SET GLOBAL innodb_flush_log_at_trx_commit = 1; SET GLOBAL max_allowed_packet = 16777216; \
                 SET GLOBAL sql_mode = DEFAULT; DROP DATABASE worst_empty";
    sql(&urls.mysql_url, right).await;
}

#[test]
fn the_worst_set_up_is_reported_in_one_go() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let urls = servers.urls();
        make_everything_wrong(&urls).await;
        let (code, found, text) = doctor(&[
            format!("redis.url={}", urls.redis_url.replacen("//", "//weak:pw@", 1)),
            "redis.prefix=worst".to_owned(),
            format!("rabbitmq.url={}", urls.amqp_url),
            "rabbitmq.prefix=worst".to_owned(),
            "rabbitmq.queue_type=classic".to_owned(),
            "rabbitmq.declare=false".to_owned(),
            format!("mysql.url={}", urls.mysql_url.replace("/seckill", "/worst_empty")),
        ]);
        make_everything_right(&urls).await;
        assert_eq!(code, Some(2), "{text}");
        // The sessions of seckill are strict whatever the server's default is.
        assert_eq!(
            found("wrong"),
            [
                "redis maxmemory-policy",
                "redis appendonly",
                "redis appendfsync",
                "redis no-appendfsync-on-rewrite",
                "redis rights of the account",
                "rabbitmq queues and exchanges",
                "mysql migrations",
                "mysql innodb_flush_log_at_trx_commit",
            ],
            "{text}"
        );
        assert_eq!(found("warning"), ["rabbitmq rabbitmq.queue_type", "mysql max_allowed_packet"], "{text}");
        for says in [
            "CONFIG SET appendonly yes",
            "unlink",
            "docs/operations.md, Accounts",
            "seckill topology",
            "seckill migrate",
            "SET GLOBAL innodb_flush_log_at_trx_commit = 1",
            "required settings that are wrong: 8; servers away: 0; warnings: 2",
        ] {
            assert!(text.contains(says), "{says}: {text}");
        }
    });
}

#[test]
fn rights_that_an_account_lacks_are_named() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "rights", &[], &[]).await;
        declare(&world.servers.rabbit).await.expect("queues");
        sql(
            world.settings.mysql.url.expose(),
            "DROP USER IF EXISTS poor@'%'; CREATE USER poor@'%' IDENTIFIED BY 'pw'; GRANT SELECT, INSERT ON rights.* TO poor@'%'; \
             GRANT UPDATE ON rights.sales TO poor@'%'; GRANT DELETE ON rights.audit_runs TO poor@'%'",
        )
        .await;
        let account = "rabbit_auth_backend_internal:add_user(<<\"poor\">>, <<\"pw\">>, <<\"guest\">>).\n";
        run_in_broker(&servers, account).await;
        let rights = |configure: &str, write: &str| {
            format!(
                "rabbit_auth_backend_internal:set_permissions(<<\"poor\">>, <<\"rights\">>, <<\"{configure}\">>, <<\"{write}\">>, \
                 <<\".*\">>, <<\"guest\">>).\n"
            )
        };
        let s = &world.settings;
        let sets = |more: &str| {
            [
                format!("redis.url={}", s.redis.url.expose()),
                format!("redis.prefix={}", s.redis.prefix),
                format!("rabbitmq.url={}", s.rabbitmq.url.expose().replace("guest:guest", "poor:pw")),
                format!("mysql.url={}", s.mysql.url.expose().replace("root@", "poor:pw@")),
                more.to_owned(),
            ]
        };
        run_in_broker(&servers, &rights("^$", "^$")).await;
        let (code, found, text) = doctor(&sets("rabbitmq.declare=false"));
        assert_eq!(code, Some(2), "{text}");
        assert_eq!(found("wrong"), ["rabbitmq rights of the account", "mysql rights of the account"], "{text}");
        for says in ["UPDATE on orders", "DELETE on outcome_event", "publishing to seckill.orders (", "ACCESS_REFUSED"]
        {
            assert!(text.contains(says), "{says}: {text}");
        }
        for untrue in ["UPDATE on sales", "DELETE on audit_runs", "INSERT on", "SELECT on"] {
            assert!(!text.contains(untrue), "{untrue}: {text}");
        }
        run_in_broker(&servers, &rights("^$", ".*")).await;
        let (_, found, text) = doctor(&sets("rabbitmq.declare=true"));
        assert_eq!(found("wrong"), ["rabbitmq queues and exchanges", "mysql rights of the account"], "{text}");
        assert!(
            text.contains("rabbitmq.declare = false") && text.contains("declare exchange seckill.orders"),
            "{text}"
        );
        world.finish().await;
    });
}
