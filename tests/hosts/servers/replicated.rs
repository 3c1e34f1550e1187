//! MariaDB with one asynchronous replica: the server of host 1 is written to, that of host 2 follows; both begin read-only, and a
//! person says which one is written to.

use super::galera::{PORT, WRITER, ask, own_folder, places, url};
use crate::host::Host;
use crate::network::{Number, address, command_on};
use crate::raw_commands::try_sql;
use crate::time::eventually;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::SeqCst};

/// The host of the replica.
pub const REPLICA: Number = 2;
/// The host whose server is written to now.
static WRITTEN_TO: AtomicU8 = AtomicU8::new(WRITER);

const OPTIONS: [&str; 13] = [
    "--no-defaults",
    "--skip-name-resolve",
    "--innodb-buffer-pool-size=64M",
    "--innodb-log-file-size=32M",
    "--innodb-flush-log-at-trx-commit=1",
    "--sync-binlog=1",
    "--log-bin=binlog",
    "--innodb-lock-wait-timeout=3",
    "--transaction-isolation=READ-COMMITTED",
    "--character-set-server=utf8mb4",
    "--max-connections=300",
    "--binlog-format=ROW",
    "--read-only=ON",
];

/// Which one.
pub fn written_to() -> Number {
    WRITTEN_TO.load(SeqCst)
}

/// Starts a host's server.
pub async fn start(host: &Arc<Host>, template: &Path) {
    let dir = own_folder(host, template);
    let number = host.number();
    let recipe = move || {
        let mut command = command_on(number);
        command.args(["setpriv", "--reuid=mysql", "--regid=mysql", "--clear-groups", "mariadbd"]).args(OPTIONS);
        command.args([
            format!("--server-id={number}"),
            format!("--bind-address={}", address(number)),
            format!("--port={PORT}"),
            format!("--init-file={}", dir.join("init.sql").display()),
        ]);
        command.args(places(&dir));
        command
    };
    host.run("mariadb", Box::new(recipe)).await;
    eventually("a database", async || ask(number, "SELECT 'up' AS value").await.is_some()).await;
}

async fn must(number: Number, statements: &str) {
    try_sql(&url(number), statements).await.unwrap_or_else(|error| panic!("host {number}: {statements}: {error}"));
}

/// Lets the replica follow.
pub async fn join() {
    must(WRITER, "SET GLOBAL read_only = OFF").await;
    let source = format!(
        "CHANGE MASTER TO MASTER_HOST = '{}', MASTER_PORT = {PORT}, MASTER_USER = 'root', MASTER_USE_GTID = slave_pos; \
         START SLAVE",
        address(WRITER)
    );
    must(REPLICA, &source).await;
}

/// The replica gets nothing more.
pub async fn fall_behind() {
    must(REPLICA, "STOP SLAVE").await;
}

/// The replica is written to from now on. The former primary, when it comes back, is read-only.
pub async fn promote() {
    must(REPLICA, "RESET SLAVE ALL; SET GLOBAL read_only = OFF").await;
    WRITTEN_TO.store(REPLICA, SeqCst);
}

/// What keeps the database from being well, if anything.
pub async fn lacks() -> Option<String> {
    let state = ask(written_to(), "SELECT CAST(@@read_only AS CHAR) AS value").await;
    // As a number, or as a word: versions differ.
    let well = state.as_deref().is_some_and(|state| ["0", "OFF"].contains(&state));
    (!well).then(|| format!("mariadb on host {}: read_only is {state:?}", written_to()))
}

/// Orders that a server has.
pub async fn orders(number: Number) -> Option<u64> {
    ask(number, "SELECT CAST(COUNT(*) AS CHAR) AS value FROM orders").await?.parse().ok()
}
