//! Rows that others have locked, a disk that is full: the consumer holds up what is concerned, and nothing else.

use crate::support::basics::database_kind::connection_ids;
use crate::support::world::database_sessions::{ROLES, Session, connections, drained, lands, stuck};
use crate::support::world::parts::mysql_store::{
    accepted, assert_sound, config, fresh, rows, sale, sale_id, url, verdicts_when_unlocked,
};
use crate::support::world::{World, eventually, run, time_passes};
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::outcome::{Outcome, Verdict};
use seckill::domain::policy::PurchasePolicy;
use seckill::roles::Role::{Api, Consumer, Relay};
use seckill::store::mysql::codes::PersistSource;
use seckill::store::mysql::{Db, DbError, migrate};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_locked_stock_row_holds_up_its_own_sale_only() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=50"]).await;
        let (stuck_sale, free) = (world.sale("stuck", 100, Some(1)).await, world.sale("free", 100, Some(1)).await);
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'stuck'").await;
        let alice = world.bought(&stuck_sale, "alice").await;
        stuck(&world).await;
        // Longer than innodb_lock_wait_timeout (1205, window 68), again and again; the neighbours are persisted meanwhile.
        for round in 0..3 {
            let user = format!("bob{round}");
            let bob = world.bought(&free, &user).await;
            lands(&world, &free, &user, bob).await;
            eventually("it is sent back", async || world.waiting_in("seckill.retry").await == 1).await;
        }
        assert_eq!(world.rows("request_outcome", "sale_id = 'stuck'").await, 0, "half a landing");
        other.run("ROLLBACK").await;
        lands(&world, &stuck_sale, "alice", alice).await;
        drained(world).await;
    });
}

/// Behind more groups of a locked sale than open the breaker, on the one queue that both use.
#[test]
fn a_backlog_of_a_locked_sale_lets_the_sales_behind_it_land() {
    run(async {
        let set = [
            "rabbitmq.queues=1",
            "p2_reserve.group_max=1",
            "p3_relay.bundle_max=1",
            "p4_persist.writers_count=1",
            "p4_persist.group_max=10",
            "p4_persist.attempts_max=100",
        ];
        let world = World::with(&[Api, Relay], &set).await;
        let (stuck_sale, free) = (world.sale("backlog", 200, Some(1)).await, world.sale("behind", 100, Some(1)).await);
        let mut other = Session::open(&world).await;
        other.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'backlog'").await;
        world.sell(&stuck_sale, 120).await;
        eventually("a backlog", async || world.waiting_in("seckill.orders").await == 120).await;
        let bob = world.bought(&free, "bob").await;
        eventually("one more behind it", async || world.waiting_in("seckill.orders").await == 121).await;
        let consumer = world.extra_roles(&[Consumer], |_| {});
        lands(&world, &free, "bob", bob).await;
        assert_eq!(world.orders(&stuck_sale).await, 0);
        other.run("ROLLBACK").await;
        eventually("the backlog's orders", async || world.orders(&stuck_sale).await == 120).await;
        eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
        assert_eq!(world.rows("failed_request", "1 = 1").await, 0);
        consumer.stop().await;
        world.finish().await;
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
fn a_full_disk_is_waited_out() {
    run(async {
        let world = World::with(&ROLES, &["p4_persist.attempts_max=100"]).await;
        seckill::store::rabbit::declare(&world.servers.rabbit).await.unwrap();
        let sale = world.sale("full", 100, Some(1)).await;
        // The real 1114, of a table in memory that a transaction of the consumer fills up.
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

#[test]
fn a_database_that_is_away_or_empty_is_an_error_not_a_panic() {
    run(async {
        let away = Db::connect(config("mysql://root@127.0.0.1:1/x".into())).unwrap();
        assert!(matches!(away.ping().await, Err(DbError::Unavailable(_))));
        assert!(matches!(migrate::migrate("mysql://root@127.0.0.1:1/x").await, Err(DbError::Unavailable(_))));
        let missing = Db::connect(config(url("nowhere").await)).unwrap();
        assert!(matches!(missing.ping().await, Err(DbError::Unavailable(_))));
    });
}

#[test]
fn a_locked_sale_in_a_group_leaves_the_other_sales_alone() {
    run(async {
        let db = fresh("neighbours").await;
        let persister = rows(&db).persister;
        for id in ["stuck", "free"] {
            rows(&db).sales.create(&sale(id, 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        }
        let mut holder = AsyncMysqlConnection::establish(&url("neighbours").await).await.unwrap();
        holder.batch_execute("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'stuck'").await.unwrap();
        let items: Vec<_> = (1..=60)
            .map(|rid| accepted(if rid % 3 == 0 { "stuck" } else { "free" }, rid, &format!("u{rid}"), 1))
            .collect();
        let locked = Err(DbError::SaleLocked(sale_id("stuck")));
        for (accepted, verdict) in items.iter().zip(persister.persist_all(&items, PersistSource::Relay).await) {
            let free = accepted.purchase.sale_id == sale_id("free");
            assert_eq!(verdict, if free { Ok(Verdict::Ordered) } else { locked.clone() });
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
        let again = verdicts_when_unlocked(&db, &items).await;
        assert!(again.iter().all(|v| matches!(v, Verdict::Ordered | Verdict::Already(Outcome::Ordered))));
        assert_sound(&db, "stuck", 20).await;
        assert_sound(&db, "free", 40).await;
    });
}

/// Three writers of one process wait for the row at the same time, as they do beside a consumer that stands still with it.
#[test]
fn a_row_that_is_free_again_is_tried_at_once_however_many_met_its_lock() {
    run(async {
        let db = fresh("writers").await;
        let persister = rows(&db).persister;
        rows(&db).sales.create(&sale("writers", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut holder = AsyncMysqlConnection::establish(&url("writers").await).await.unwrap();
        holder.batch_execute("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'writers'").await.unwrap();
        let items: Vec<_> = (1..=3).map(|rid| accepted("writers", rid, &format!("u{rid}"), 1)).collect();
        let locked = Err(DbError::SaleLocked(sale_id("writers")));
        let tries = items.iter().map(|item| persister.persist_all(std::slice::from_ref(item), PersistSource::Relay));
        for verdicts in futures::future::join_all(tries).await {
            assert_eq!(verdicts, std::slice::from_ref(&locked));
        }
        // While the row is locked, no transaction waits for it a second time: that would hold up what is behind it in the queue.
        for _ in 0..5 {
            time_passes(300).await;
            assert_eq!(persister.persist_all(&items, PersistSource::Relay).await, vec![locked.clone(); 3]);
        }
        holder.batch_execute("ROLLBACK").await.unwrap();
        time_passes(300).await;
        let ordered = vec![Ok(Verdict::Ordered); 3];
        assert_eq!(
            persister.persist_all(&items, PersistSource::Relay).await,
            ordered,
            "the first try after it was freed"
        );
        assert_sound(&db, "writers", 3).await;
    });
}

/// Two sessions hold the row in turns, so that one always has it: as other processes do that are busy with the same sale.
#[test]
fn a_row_that_is_busy_and_not_stuck_is_waited_for_after_a_while() {
    run(async {
        let world = World::with(&[], &[]).await;
        let (sale, persister) = (world.sale("busy", 100, Some(1)).await, rows(&world.servers.db).persister);
        let items = [accepted("busy", 1, "u1", 1)];
        let mut holder = Session::open(&world).await;
        holder.run("BEGIN; UPDATE sales SET title = 'x' WHERE sale_id = 'busy'").await;
        let locked = [Err(DbError::SaleLocked(sale.clone()))];
        assert_eq!(persister.persist_all(&items, PersistSource::Relay).await, locked);
        let is_over = Arc::new(AtomicBool::new(false));
        let mut writers = Vec::new();
        for _ in 0..2 {
            let (is_over, mut writer) = (is_over.clone(), Session::open(&world).await);
            writers.push(tokio::spawn(async move {
                while !is_over.load(Ordering::Relaxed) {
                    let turn = "BEGIN; UPDATE sales SET title = 'y' WHERE sale_id = 'busy'; DO SLEEP(0.1); COMMIT";
                    writer.run(turn).await;
                }
            }));
        }
        eventually("both wait for it", async || {
            let waiting = format!("db = '{}' AND info LIKE 'UPDATE%y%'", world.database());
            connection_ids(&mut Session::open(&world).await.0, &waiting).await.len() == 2
        })
        .await;
        holder.run("ROLLBACK").await;
        eventually("its turn", async || {
            persister.persist_all(&items, PersistSource::Relay).await == [Ok(Verdict::Ordered)]
        })
        .await;
        is_over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.await.unwrap();
        }
        assert_eq!(world.orders(&sale).await, 1);
    });
}

/// Finding one row of five hundred takes nine waits, one more than a call sits out.
#[test]
fn a_locked_row_in_a_large_group_leaves_the_others_alone() {
    run(async {
        let db = fresh("large").await;
        let persister = rows(&db).persister;
        rows(&db).sales.create(&sale("large", 1_000, PurchasePolicy::OnePerUser)).await.unwrap();
        let mut holder = AsyncMysqlConnection::establish(&url("large").await).await.unwrap();
        let row = "BEGIN; INSERT INTO orders (request_id, sale_id, user_id, one_per_user_id, quantity, amount_cents, source, \
                   accepted_at) VALUES (7000, 'large', 'u1', 'u1', 1, 1, 'replay', NOW(3))";
        holder.batch_execute(row).await.unwrap();
        let items: Vec<_> = (1..=500).map(|rid| accepted("large", rid, &format!("u{rid}"), 1)).collect();
        let verdicts = persister.persist_all(&items, PersistSource::Relay).await;
        let ordered = verdicts.iter().filter(|verdict| **verdict == Ok(Verdict::Ordered)).count();
        assert!(ordered >= 496, "{ordered} of 500");
        let open = verdicts.iter().filter(|verdict| verdict.is_err());
        assert!(open.clone().all(|verdict| *verdict == Err(DbError::LeftUntried)), "none was tried for itself");
        let rest: Vec<_> =
            items.into_iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_err()).map(|(item, _)| item).collect();
        let verdicts = persister.persist_all(&rest, PersistSource::Relay).await;
        assert_eq!(verdicts[0], Err(DbError::LockWait));
        assert!(verdicts[1..].iter().all(|verdict| *verdict == Ok(Verdict::Ordered)), "{verdicts:?}");
        holder.batch_execute("ROLLBACK").await.unwrap();
        assert_eq!(persister.persist_all(&rest[..1], PersistSource::Relay).await, [Ok(Verdict::Ordered)]);
        assert_sound(&db, "large", 500).await;
    });
}
