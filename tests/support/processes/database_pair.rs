//! Two databases that replicate each other; one takes writes, the other is read-only. The roles' user may not write past that.

use super::programs::scratch;
use crate::support::world::fault_injection::sql;
use crate::support::world::{eventually, pause};
use diesel::QueryableByName;
use diesel::sql_types::BigInt;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::dev::ports::free_port;
use seckill::dev::{Server, mariadb};

/// Two servers; they die with the value.
pub struct DatabasePair {
    /// The first one is the primary at the beginning.
    pub servers: [Server; 2],
}

/// Rows that a transaction of the consumer or of an operator adds; as many on both servers: nothing is on its way.
const ROWS: &str = "SELECT (SELECT COUNT(*) FROM request_outcome) + (SELECT COUNT(*) FROM stock_flow) + \
                    (SELECT COUNT(*) FROM orders) + (SELECT COUNT(*) FROM failed_request) AS n";

/// Semi-synchronous replication in the words of one database.
pub struct SemiSynchronous {
    /// On the source, on the replica.
    begin: [&'static str; 2],
    /// On the replica: it acknowledges nothing any more.
    pub stop: &'static str,
}

const SEMI_SYNCHRONOUS: [SemiSynchronous; 2] = [
    SemiSynchronous {
        begin: [
            "SET GLOBAL rpl_semi_sync_master_enabled = 1",
            "SET GLOBAL rpl_semi_sync_slave_enabled = 1; STOP SLAVE IO_THREAD; START SLAVE IO_THREAD",
        ],
        stop: "STOP SLAVE IO_THREAD",
    },
    SemiSynchronous {
        begin: [
            "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'; SET GLOBAL rpl_semi_sync_source_enabled = 1",
            "INSTALL PLUGIN rpl_semi_sync_replica SONAME 'semisync_replica.so'; \
             SET GLOBAL rpl_semi_sync_replica_enabled = 1; STOP REPLICA IO_THREAD; START REPLICA IO_THREAD",
        ],
        stop: "STOP REPLICA IO_THREAD",
    },
];

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

async fn start(name: &str, id: u8) -> Server {
    let dir = scratch(name);
    std::fs::remove_dir_all(&dir).ok();
    let options = [format!("--server-id={id}"), "--log-bin=binlog".to_owned(), "--read-only=1".to_owned()];
    let options = options.each_ref().map(String::as_str);
    mariadb::start_with_options(&dir, free_port().expect("a port"), &options).await.expect("a database")
}

impl DatabasePair {
    /// Both on folders of their own.
    pub async fn start(name: &str) -> Self {
        let names = [1, 2].map(|id| format!("{name}-{id}"));
        let (one, two) = tokio::join!(start(&names[0], 1), start(&names[1], 2));
        let pair = Self { servers: [one, two] };
        let maker = "CREATE USER 'app'@'127.0.0.1'; GRANT ALL PRIVILEGES ON seckill.* TO 'app'@'127.0.0.1'";
        sql(&pair.root(0), maker).await;
        for (follower, source) in [(1, 0), (0, 1)] {
            pair.follow(follower, source).await;
        }
        eventually("the roles' user on both", async || {
            pair.number(1, "SELECT COUNT(*) AS n FROM mysql.user WHERE User = 'app'").await == 1
        })
        .await;
        pair.takes_writes(0, true).await;
        pair
    }

    async fn follow(&self, follower: usize, source: usize) {
        let port = self.servers[source].port();
        let of_mariadb = format!(
            "CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {port}, MASTER_USER = 'root'; START SLAVE"
        );
        let of_mysql = format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = {port}, SOURCE_USER = 'root', \
             GET_SOURCE_PUBLIC_KEY = 1; START REPLICA"
        );
        if crate::support::basics::raw_commands::try_sql(&self.root(follower), &of_mariadb).await.is_err() {
            sql(&self.root(follower), &of_mysql).await;
        }
    }

    /// Where one of them is, for an administrator.
    pub fn root(&self, server: usize) -> String {
        format!("{}?prefer_socket=false", self.servers[server].url())
    }

    /// Where one of them is, for the roles.
    pub fn url(&self, server: usize) -> String {
        self.root(server).replace("root@", "app@")
    }

    /// Both, for the roles, with a comma.
    pub fn urls(&self) -> String {
        format!("{},{}", self.url(0), self.url(1))
    }

    /// Lifts or sets `read_only`.
    pub async fn takes_writes(&self, server: usize, yes: bool) {
        sql(&self.root(server), &format!("SET GLOBAL read_only = {}", u8::from(!yes))).await;
    }

    /// The whole number that a query selects as `n` on one of them.
    pub async fn number(&self, server: usize, query: &str) -> i64 {
        let mut connection = AsyncMysqlConnection::establish(&self.root(server)).await.expect("the database");
        diesel::sql_query(query).get_result::<Number>(&mut connection).await.expect(query).n
    }

    /// Lets the first wait for the second's acknowledgement of each commit, by the words of the database it is.
    pub async fn semi_synchronous(&self) -> &'static SemiSynchronous {
        for words in &SEMI_SYNCHRONOUS {
            let [source, replica] = words.begin;
            if crate::support::basics::raw_commands::try_sql(&self.root(0), source).await.is_ok() {
                sql(&self.root(1), replica).await;
                return words;
            }
        }
        panic!("neither MariaDB's nor MySQL's words for it are known here");
    }

    /// Demotes one server and, once the other has all, promotes that: no commit is lost.
    pub async fn fail_over(&self, from: usize, to: usize) {
        self.takes_writes(from, false).await;
        while self.number(from, ROWS).await != self.number(to, ROWS).await {
            pause().await;
        }
        self.takes_writes(to, true).await;
    }
}
