//! Faults of the whole database server, provoked for real while the consumer role runs: each ends in a consistent sheet.

use crate::support::basics::database_kind::{DatabaseKind, numbers};
use crate::support::world::database_sessions::{ROLES, Session, connections, drained, lands, plain_user, stuck};
use crate::support::world::fault_injection::breakable_servers;
use crate::support::world::{World, eventually, run_waiting, time_passes};
use diesel_async::{AsyncConnection, AsyncMysqlConnection};
use seckill::config::ServerUrl;
use seckill::dev::ServerKind;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill_bench::loadgen::{self, LoadPlan};

#[test]
fn a_lost_deadlock_is_run_again_as_a_whole() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "deadlock", &ROLES, &[]).await;
        let sale = world.sale("deadlock", 100, Some(1)).await;
        let deadlocks = "SELECT CAST(count AS SIGNED) AS n FROM information_schema.innodb_metrics \
                         WHERE name = 'lock_deadlocks'";
        let before = world.number(deadlocks).await;
        // The other side has written more, so that the consumer's transaction is the victim (window 67).
        let mut other = Session::open(&world).await;
        other.run("CREATE TABLE weight (n INT PRIMARY KEY)").await;
        let heavier = format!("BEGIN; INSERT INTO weight {}; UPDATE sales SET title = 'x'", numbers(5_000));
        other.run(&heavier).await;
        let alice = world.bought(&sale, "alice").await;
        stuck(&world).await;
        other.run(&format!("UPDATE orders SET amount_cents = 0 WHERE request_id = {alice}; COMMIT")).await;
        lands(&world, &sale, "alice", alice).await;
        assert!(world.number(deadlocks).await > before, "there was a deadlock");
        assert_eq!(world.rows("orders", "amount_cents = 100").await, 1);
        drained(world).await;
    });
}

/// Statements after which no COMMIT ends, and those after which it does. A commit of MariaDB is undone when its connection is
/// killed; MySQL's is in the binary log already, waits for a replica, and takes effect all the same.
const fn commits_wait(kind: DatabaseKind) -> (&'static str, &'static str) {
    match kind {
        DatabaseKind::Mariadb => ("BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT", "BACKUP STAGE END"),
        DatabaseKind::Mysql => (
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; \
             SET GLOBAL rpl_semi_sync_source_timeout = 60000; SET GLOBAL rpl_semi_sync_source_enabled = 1",
            "SET GLOBAL rpl_semi_sync_source_enabled = 0; UNINSTALL PLUGIN rpl_semi_sync_source",
        ),
    }
}

#[test]
fn a_connection_killed_in_the_transaction_or_in_its_commit_is_looked_up_not_guessed() {
    run_waiting(async {
        // What holds a commit up holds up those of the whole server.
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "commits", &ROLES, &["p4_persist.attempts_max=50"]).await;
        let sale = world.sale("killed", 100, Some(1)).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x'").await;
        let alice = world.bought(&sale, "alice").await;
        let id = stuck(&world).await;
        other.run(&format!("KILL {id}; ROLLBACK")).await;
        lands(&world, &sale, "alice", alice).await;
        // Window 64: COMMIT is under way and its connection dies.
        let (hold, release) = commits_wait(DatabaseKind::of(&mut other.0).await);
        other.run(hold).await;
        let bob = world.bought(&sale, "bob").await;
        let mut id = 0;
        eventually("a commit that waits", async || {
            id = connections(&world, "info = 'COMMIT'").await;
            id != 0
        })
        .await;
        other.run(&format!("KILL {id}; {release}")).await;
        lands(&world, &sale, "bob", bob).await;
        assert_eq!(world.orders(&sale).await, 2);
        drained(world).await;
    });
}

#[test]
fn a_read_only_database_burns_no_attempt() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "readonly", &[Api, Relay], &[]).await;
        let sale = world.sale("readonly", 1_000, Some(1)).await;
        let url = plain_user(&world, "landlord").await;
        let consumer = world.extra_roles(&[Consumer], |settings| settings.mysql.url = ServerUrl::new(url));
        world.sell(&sale, 50).await;
        eventually("50 orders", async || world.orders(&sale).await == 50).await;
        world.sql("SET GLOBAL read_only = 1").await;
        let alice = world.bought(&sale, "alice").await;
        // Beyond several rounds of the open breaker.
        time_passes(4_000).await;
        assert_eq!(
            world.waiting_in("seckill.retry").await + world.waiting_in("seckill.dlq").await,
            0,
            "attempts burnt"
        );
        assert_eq!(world.status_of(&sale, "alice", alice).await.0, "QUEUED");
        world.sql("SET GLOBAL read_only = 0").await;
        lands(&world, &sale, "alice", alice).await;
        consumer.stop().await;
        drained(world).await;
    });
}

#[test]
fn a_database_without_a_connection_to_spare_burns_no_attempt() {
    run_waiting(async {
        let servers = breakable_servers().await;
        let world = World::on_breakable(&servers, "crowded", &[Api, Relay], &[]).await;
        let sale = world.sale("crowded", 1_000, Some(1)).await;
        let mut users = Vec::new();
        for user in ["alice", "bob", "carol"] {
            users.push((user, world.bought(&sale, user).await));
        }
        eventually("everything at the broker", async || world.outbox().await == (0, 0)).await;
        let url = plain_user(&world, "lodger").await;
        let mut warden = Session::open(&world).await;
        warden.run("SET GLOBAL max_connections = 10").await;
        let mut lodgers = Vec::new();
        while let Ok(lodger) = AsyncMysqlConnection::establish(&url).await {
            lodgers.push(lodger);
        }
        let consumer = world.extra_roles(&[Consumer], |settings| settings.mysql.url = ServerUrl::new(url.clone()));
        eventually("messages in the consumer's hand", async || world.waiting_in("seckill.orders").await == 0).await;
        time_passes(3_000).await;
        assert_eq!(world.waiting_in("seckill.").await, 0, "neither sent back nor parked (1040)");
        drop(lodgers);
        warden.run("SET GLOBAL max_connections = 500").await;
        for (user, id) in users {
            lands(&world, &sale, user, id).await;
        }
        consumer.stop().await;
        drained(world).await;
    });
}

#[test]
fn a_database_that_stands_still_beyond_the_deadline_answers_nobody_wrongly_afterwards() {
    run_waiting(async {
        let mut servers = breakable_servers().await;
        let set = ["mysql.statement_timeout_ms=500", "p4_persist.group_max=50", "p4_persist.prefetch=100"];
        let world = World::on_breakable(&servers, "standing", &ROLES, &set).await;
        let sale = world.sale("standing", 10_000, Some(1)).await;
        let selling = tokio::spawn(loadgen::run(LoadPlan { rate_per_s: Some(400.0), ..world.crowd(&sale, 3_000) }));
        for stop in 1..=3 {
            eventually("a load", async || world.orders(&sale).await > stop * 300).await;
            servers.server(ServerKind::Mysql).unwrap().pause().unwrap();
            // Twice the deadline of a call (twice the statement's).
            time_passes(2_000).await;
            servers.server(ServerKind::Mysql).unwrap().resume().unwrap();
        }
        assert_eq!(selling.await.unwrap().unwrap().accepted, 3_000);
        eventually("everything", async || world.orders(&sale).await == 3_000).await;
        drained(world).await;
    });
}
