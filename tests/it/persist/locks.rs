//! Group C: every fault of the database, provoked for real while the consumer role runs, ends in a consistent sheet.

use super::hands::{breakable, sql};
use super::world::{World, eventually, run, time_passes};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::config::ServerUrl;
use seckill::crowd::{self, CrowdPlan};
use seckill::dev::ServerKind;
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role::{Api, Consumer, Relay};

const ROLES: [seckill::roles::Role; 3] = [Api, Relay, Consumer];

/// Another client of the same database.
struct Session(AsyncMysqlConnection);

impl Session {
    async fn open(world: &World) -> Self {
        Self(AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap())
    }

    async fn run(&mut self, statements: &str) {
        self.0.batch_execute(statements).await.expect(statements);
    }
}

/// Connections to this world's database, other than the asking one, whose statement or state is like this.
async fn connections(world: &World, like: &str) -> i64 {
    let of_world = format!("db = '{}' AND id <> CONNECTION_ID()", world.settings.redis.prefix);
    let query =
        format!("SELECT COALESCE(MAX(id), 0) AS n FROM information_schema.processlist WHERE {of_world} AND {like}");
    world.number(&query).await
}

/// The connection that waits for the stock row.
async fn stuck(world: &World) -> i64 {
    let mut id = 0;
    eventually("a landing that waits for the stock row", async || {
        id = connections(world, "info LIKE 'UPDATE%sales%'").await;
        id != 0
    })
    .await;
    id
}

async fn lands(world: &World, sale: &SaleId, user: &str, id: RequestId) {
    eventually(user, async || world.told(sale, user, id).await.0 == "CONFIRMED").await;
}

/// The end: nothing waits, nothing was parked.
async fn drained(world: World) {
    eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
    assert_eq!(world.rows("failed_request", "1 = 1").await, 0);
    world.finish().await;
}

#[test]
fn a_lost_deadlock_is_run_again_as_a_whole() {
    run(async {
        let servers = breakable().await;
        let world = World::on_breakable(&servers, "deadlock", &ROLES, &[]).await;
        let sale = world.sale("deadlock", 100, Some(1)).await;
        let deadlocks = "SELECT CAST(variable_value AS SIGNED) AS n FROM information_schema.global_status \
                         WHERE variable_name = 'INNODB_DEADLOCKS'";
        let before = world.number(deadlocks).await;
        // The other side has written more, so that the landing is the victim (window 67).
        let mut other = Session::open(&world).await;
        other.run("CREATE TABLE weight (n INT PRIMARY KEY)").await;
        other.run("BEGIN; INSERT INTO weight SELECT seq FROM seq_1_to_5000; UPDATE sales SET title = 'x'").await;
        let alice = world.bought(&sale, "alice").await;
        stuck(&world).await;
        other.run(&format!("UPDATE orders SET amount_cents = 0 WHERE request_id = {alice}; COMMIT")).await;
        lands(&world, &sale, "alice", alice).await;
        assert!(world.number(deadlocks).await > before, "there was a deadlock");
        assert_eq!(world.rows("orders", "amount_cents = 100").await, 1);
        drained(world).await;
    });
}

#[test]
fn a_locked_stock_row_holds_up_its_own_sale_only() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=50"]).await;
        let (stuck_sale, free) = (world.sale("stuck", 100, Some(1)).await, world.sale("free", 100, Some(1)).await);
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'stuck'").await;
        let alice = world.bought(&stuck_sale, "alice").await;
        stuck(&world).await;
        // Longer than innodb_lock_wait_timeout (1205, window 68), again and again; the neighbours land meanwhile.
        for round in 0..3 {
            let user = format!("bob{round}");
            let bob = world.bought(&free, &user).await;
            lands(&world, &free, &user, bob).await;
            stuck(&world).await;
        }
        assert_eq!(world.rows("request_outcome", "sale_id = 'stuck'").await, 0, "half a landing");
        other.run("ROLLBACK").await;
        lands(&world, &stuck_sale, "alice", alice).await;
        drained(world).await;
    });
}

#[test]
fn a_locked_row_of_one_buyer_holds_up_that_buyer_only() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=50"]).await;
        let sale = world.sale("buyer", 100, Some(1)).await;
        let mut other = Session::open(&world).await;
        other
            .run(
                "BEGIN; INSERT INTO orders (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, \
                 accepted_at) VALUES (7, 'buyer', 'alice', 'alice', 1, 1, 'replay', NOW(3))",
            )
            .await;
        let alice = world.bought(&sale, "alice").await;
        let waits = async || connections(&world, "info LIKE '%INSERT INTO orders%'").await != 0;
        eventually("a landing that waits", waits).await;
        let bob = world.bought(&sale, "bob").await;
        lands(&world, &sale, "bob", bob).await;
        eventually("another wait", waits).await;
        other.run("ROLLBACK").await;
        lands(&world, &sale, "alice", alice).await;
        drained(world).await;
    });
}

#[test]
fn a_connection_killed_in_the_transaction_or_in_its_commit_is_looked_up_not_guessed() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=50"]).await;
        let sale = world.sale("killed", 100, Some(1)).await;
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x'").await;
        let alice = world.bought(&sale, "alice").await;
        let id = stuck(&world).await;
        other.run(&format!("KILL {id}; ROLLBACK")).await;
        lands(&world, &sale, "alice", alice).await;
        // Window 64: COMMIT is under way and its connection dies.
        other.run("BACKUP STAGE START; BACKUP STAGE BLOCK_COMMIT").await;
        let bob = world.bought(&sale, "bob").await;
        let mut id = 0;
        eventually("a commit that waits", async || {
            id = connections(&world, "info = 'COMMIT'").await;
            id != 0
        })
        .await;
        other.run(&format!("KILL {id}; BACKUP STAGE END")).await;
        lands(&world, &sale, "bob", bob).await;
        assert_eq!(world.orders(&sale).await, 2);
        drained(world).await;
    });
}

/// A user without the rights of an administrator, as a consumer has in earnest; returns its address.
async fn plain_user(world: &World, name: &str) -> String {
    let url = world.settings.mysql.url.expose();
    let rights =
        format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO '{name}'@'127.0.0.1'", world.settings.redis.prefix);
    sql(url, &format!("CREATE OR REPLACE USER '{name}'@'127.0.0.1'; {rights}")).await;
    url.replace("root@", &format!("{name}@"))
}

#[test]
fn a_read_only_database_burns_no_attempt() {
    run(async {
        let servers = breakable().await;
        let world = World::on_breakable(&servers, "readonly", &[Api, Relay], &[]).await;
        let sale = world.sale("readonly", 1_000, Some(1)).await;
        let url = plain_user(&world, "landlord").await;
        let consumer = world.more(&[Consumer], |settings| settings.mysql.url = ServerUrl::new(url));
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
        assert_eq!(world.told(&sale, "alice", alice).await.0, "QUEUED");
        world.sql("SET GLOBAL read_only = 0").await;
        lands(&world, &sale, "alice", alice).await;
        consumer.stop().await;
        drained(world).await;
    });
}

#[test]
fn a_database_without_a_connection_to_spare_burns_no_attempt() {
    run(async {
        let servers = breakable().await;
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
        let consumer = world.more(&[Consumer], |settings| settings.mysql.url = ServerUrl::new(url.clone()));
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
    run(async {
        let mut servers = breakable().await;
        let set = ["mysql.statement_timeout_ms=500", "p4_persist.group_max=50", "p4_persist.prefetch=100"];
        let world = World::on_breakable(&servers, "standing", &ROLES, &set).await;
        let sale = world.sale("standing", 10_000, Some(1)).await;
        let selling = tokio::spawn(crowd::run(CrowdPlan { rate_per_s: Some(400.0), ..world.crowd(&sale, 3_000) }));
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

#[test]
fn a_full_disk_is_waited_out() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=100"]).await;
        seckill::store::rabbit::declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("full", 100, Some(1)).await;
        // The real 1114, of a table in memory that a landing fills up.
        let mut other = Session::open(&world).await;
        other.run("SET SESSION max_heap_table_size = 16384; CREATE TABLE disk (b CHAR(250)) ENGINE = MEMORY").await;
        while other.0.batch_execute("INSERT INTO disk VALUES ('x')").await.is_ok() {}
        other.run("CREATE TRIGGER fills BEFORE INSERT ON orders FOR EACH ROW INSERT INTO disk VALUES ('x')").await;
        let alice = world.bought(&sale, "alice").await;
        eventually("a retry", async || world.waiting_in("seckill.retry").await == 1).await;
        assert_eq!(world.rows("request_outcome", "1 = 1").await, 0, "half a landing");
        other.run("DROP TRIGGER fills").await;
        lands(&world, &sale, "alice", alice).await;
        drained(world).await;
    });
}
