//! Faults inside the database, by a session that may do anything.

use super::{Field, Outcome};
use crate::database_kind::numbers;
use crate::raw_commands::try_sql;
use crate::time::time_passes;
use seckill::dev::ServerKind;
use std::time::Duration;
use tokio::time::timeout;

/// One batch of statements, waits for locks included; a frozen server does not answer at all.
const ANSWER: Duration = Duration::from_secs(12);

const MANY_CONNECTIONS: &str = "SET GLOBAL max_connections = 500";

/// Heavier than any landing, so that the server chooses the product's transaction as the deadlock's victim.
const WEIGHT: &str = "CREATE DATABASE IF NOT EXISTS nemesis; \
    CREATE TABLE IF NOT EXISTS nemesis.weight (n INT NOT NULL) ENGINE = InnoDB";
/// Locks in the order opposite to the product's, with a pause in between.
fn deadlock() -> String {
    format!(
        "BEGIN; INSERT INTO nemesis.weight {}; SELECT sale_id FROM sales FOR UPDATE; DO SLEEP(0.3); \
         SELECT request_id FROM request_outcome FOR UPDATE; ROLLBACK",
        numbers(20_000)
    )
}

/// Kills every connection of the product (the account of [`crate::deployment::DB_USER`]). MariaDB alone can do that by one
/// statement. A connection that has gone by itself (1094) is no error.
pub(super) const KILL_ALL: &str = "CREATE DATABASE IF NOT EXISTS nemesis; \
    CREATE PROCEDURE IF NOT EXISTS nemesis.kill_all() BEGIN \
    DECLARE ended INT DEFAULT 0; DECLARE victim BIGINT; \
    DECLARE victims CURSOR FOR SELECT id FROM information_schema.processlist WHERE user = 'seckill'; \
    DECLARE CONTINUE HANDLER FOR NOT FOUND SET ended = 1; DECLARE CONTINUE HANDLER FOR 1094 BEGIN END; \
    OPEN victims; REPEAT FETCH victims INTO victim; IF NOT ended THEN KILL victim; END IF; UNTIL ended END REPEAT; \
    END; CALL nemesis.kill_all()";

/// The hot rows, held from another session (windows 68, 81).
pub(super) fn lock_stock(length_ms: u64) -> String {
    let seconds = length_ms as f64 / 1000.0;
    format!("BEGIN; SELECT sale_id FROM sales FOR UPDATE; DO SLEEP({seconds}); ROLLBACK")
}

impl Field {
    /// Statements, past the proxies.
    pub(super) async fn sql(&self, statements: &str) -> Result<(), String> {
        let asked = timeout(ANSWER, try_sql(&self.deployment.urls().mysql, statements)).await;
        asked.map_err(|_late| "no answer".to_owned())?.map_err(|error| error.to_string())
    }

    /// Nothing can be written for a while.
    pub(super) async fn read_only(&self, length_ms: u64) -> Outcome {
        let done = self.sql("SET GLOBAL read_only = 1").await;
        time_passes(length_ms).await;
        self.writable().await;
        done.into()
    }

    /// Too few connections for all; those who have one lose it, or they would not notice. The session that sets the limit
    /// takes it back: once the product and the sampler hold every place, no other session gets in.
    pub(super) async fn few_connections(&self, length_ms: u64) -> Outcome {
        let seconds = length_ms as f64 / 1000.0;
        let few = format!("SET GLOBAL max_connections = 10; {KILL_ALL}; DO SLEEP({seconds}); {MANY_CONNECTIONS}");
        let done = self.sql(&few).await;
        if done.is_err() {
            self.many_connections().await;
        }
        done.into()
    }

    /// A session that takes the product's locks in the opposite order (window 67).
    pub(super) async fn deadlock(&self) -> Outcome {
        match self.sql(WEIGHT).await {
            Ok(()) => self.sql(&deadlock()).await.into(),
            error => error.into(),
        }
    }

    /// A killed server comes back with its own settings, here and below.
    pub(super) async fn writable(&self) {
        self.undo(ServerKind::Mysql, || self.sql("SET GLOBAL read_only = 0")).await;
    }

    pub(super) async fn many_connections(&self) {
        self.undo(ServerKind::Mysql, || self.sql(MANY_CONNECTIONS)).await;
    }
}
