//! The classifier against the errors themselves: each is provoked on a real server, and its class compared.
//!
//! The codes are MariaDB's; where MySQL has another one, it stands behind a slash. Texts of more versions are compared in
//! `src/store/mysql/fault.rs`.

use crate::support::basics::database_kind::{numbers, running};
use crate::support::world::database_sessions::connections;
use crate::support::world::parts::mysql_store::{class, session_of, url};
use crate::support::world::{World, eventually, run};
use diesel::result::Error;
use diesel_async::SimpleAsyncConnection;
use seckill::store::mysql::transaction::transaction;
use seckill::store::mysql::{DbError, migrate};

#[test]
fn errors_of_one_session_have_their_class() {
    run(async {
        let url = url("classes").await;
        migrate::migrate(&url).await.unwrap();
        let mut session = session_of(&url).await;
        let prepare = "CREATE TABLE t (n INT UNSIGNED PRIMARY KEY, s VARCHAR(3), CONSTRAINT ck_t CHECK (n < 100)); INSERT INTO t VALUES (1, 'a'); \
            SET SESSION max_heap_table_size = 16384; CREATE TABLE disk (b CHAR(250)) ENGINE = MEMORY";
        session.batch_execute(prepare).await.unwrap();
        let fill = format!("INSERT INTO disk SELECT 'x' FROM ({}) AS numbers", numbers(1_000));
        // Each server reads its own half of the limit, as the product's own sessions have it.
        let limited =
            "SET SESSION /*M! max_statement_time = 0.1 */ /*!80000 max_execution_time = 100 */; SELECT SLEEP(5) FROM t";
        let cases = [
            ("1062", "INSERT INTO t VALUES (1, 'b')", "duplicate"),
            ("1792", "START TRANSACTION READ ONLY; UPDATE t SET s = 'c'", "wrong node"),
            ("1969/3024", limited, "timeout"),
            ("1114", &fill, "unavailable"),
            ("1146", "SELECT * FROM nowhere", "unavailable"),
            ("1054", "SELECT nothing FROM t", "unavailable"),
            ("4025/3819", "INSERT INTO t VALUES (100, 'x')", "other"),
            ("1264", "INSERT INTO t VALUES (-1, 'x')", "other"),
            ("1406", "INSERT INTO t VALUES (2, 'Deadlock found')", "other"),
            ("1366", "INSERT INTO t VALUES ('Lock wait timeout exceeded', 'x')", "other"),
            ("1048", "INSERT INTO t VALUES (NULL, 'x')", "other"),
            ("1644", "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'a trigger says no'", "other"),
            ("1064", "SELEC 'Too many connections'", "other"),
        ];
        for (code, statement, expected) in cases {
            let mut session = session_of(&url).await;
            let error: Error = session.batch_execute(statement).await.expect_err(statement);
            let seen = DbError::from(error);
            assert_eq!(class(&seen), expected, "{code}: {seen}");
        }
    });
}

#[test]
fn errors_between_two_sessions_have_their_class() {
    run(async {
        let url = url("classes_two").await;
        migrate::migrate(&url).await.unwrap();
        let (mut one, mut two) = (session_of(&url).await, session_of(&url).await);
        one.batch_execute("CREATE TABLE t (n INT PRIMARY KEY, s INT); INSERT INTO t VALUES (1, 0), (2, 0)")
            .await
            .unwrap();
        one.batch_execute("BEGIN; UPDATE t SET s = 1 WHERE n = 1").await.unwrap();
        let waited = two.batch_execute("UPDATE t SET s = 2 WHERE n = 1").await.unwrap_err();
        assert_eq!(DbError::from(waited), DbError::LockWait, "1205");
        two.batch_execute("SET innodb_lock_wait_timeout = 20; BEGIN; UPDATE t SET s = 2 WHERE n = 2").await.unwrap();
        one.batch_execute("SET innodb_lock_wait_timeout = 20").await.unwrap();
        let (first, second) = tokio::join!(
            one.batch_execute("UPDATE t SET s = 1 WHERE n = 2"),
            two.batch_execute("UPDATE t SET s = 2 WHERE n = 1")
        );
        let victim = first.err().or(second.err()).expect("a victim");
        assert_eq!(DbError::from(victim), DbError::Deadlock, "1213");

        // Killed from outside: the statement (1317), then the connection.
        for (kill, expected) in [("KILL QUERY", "timeout"), ("KILL", "unavailable")] {
            let (mut victim, mut killer) = (session_of(&url).await, session_of(&url).await);
            let dying = tokio::spawn(async move { victim.batch_execute("SELECT SLEEP(60) FROM t").await.unwrap_err() });
            let mut id = None;
            eventually("a statement to kill", async || {
                id = running(&mut killer, "SELECT SLEEP(60)%").await;
                id.is_some()
            })
            .await;
            killer.batch_execute(&format!("{kill} {}", id.unwrap())).await.unwrap();
            let seen = DbError::from(dying.await.unwrap());
            assert_eq!(class(&seen), expected, "{kill}: {seen}");
        }
    });
}

/// On a machine with a database of its own the driver would leave the one that was named for that one.
#[test]
fn the_address_is_meant_and_not_a_socket_of_this_machine() {
    run(async {
        let world = World::start().await;
        assert_ne!(connections(&world, "host LIKE '127.0.0.1:%'").await, 0);
        assert_eq!(connections(&world, "host NOT LIKE '127.0.0.1:%'").await, 0);
        world.stop().await;
    });
}

/// As a node of Galera does when another one was first, where the command that is under way cannot say so.
#[test]
fn of_a_transaction_that_the_server_undid_halfway_nothing_is_committed() {
    run(async {
        let world = World::with(&[], &[]).await;
        world.sql("CREATE TABLE halves (half INT PRIMARY KEY) ENGINE = InnoDB").await;
        let written = async |undo: &'static str| {
            let both = world.servers.db.run("halves", async |conn| {
                transaction(conn, async |conn| {
                    conn.batch_execute("INSERT INTO halves VALUES (1)").await?;
                    conn.batch_execute(undo).await?;
                    conn.batch_execute("INSERT INTO halves VALUES (2)").await?;
                    Ok(())
                })
                .await
            });
            (both.await, world.rows("halves", "1 = 1").await)
        };
        assert_eq!(written("ROLLBACK").await, (Err(DbError::Deadlock), 0));
        assert_eq!(written("DO 0").await, (Ok(()), 2));
        assert_eq!(written("DO 0").await, (Err(DbError::Duplicate("PRIMARY".to_owned())), 2));
        // The session commits by itself again.
        let one = world
            .servers
            .db
            .run("halves", async |conn| Ok(conn.batch_execute("INSERT INTO halves VALUES (3)").await?));
        assert_eq!((one.await, world.rows("halves", "1 = 1").await), (Ok(()), 3));
        world.finish().await;
    });
}
