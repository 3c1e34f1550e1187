//! Other clients of a world's database, which lock and kill what the consumer works on.

use super::fault_injection::sql;
use super::{World, eventually};
use crate::support::basics::database_kind::connection_ids;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, SimpleAsyncConnection};
use seckill::domain::ids::{RequestId, SaleId};
use seckill::roles::Role::{Api, Consumer, Relay};

/// The pipeline, without P5: no process repairs.
pub const ROLES: [seckill::roles::Role; 3] = [Api, Relay, Consumer];

/// Another client of the same database.
pub struct Session(pub AsyncMysqlConnection);

impl Session {
    /// Logs in.
    pub async fn open(world: &World) -> Self {
        Self(AsyncMysqlConnection::establish(world.settings.mysql.url.expose()).await.unwrap())
    }

    /// Runs statements that must succeed.
    pub async fn run(&mut self, statements: &str) {
        self.try_run(statements).await.expect(statements);
    }

    /// Runs statements that may fail.
    pub async fn try_run(&mut self, statements: &str) -> diesel::QueryResult<()> {
        self.0.batch_execute(statements).await
    }
}

/// The newest connection to this world's database, other than the asking one, whose statement or state is like this; 0: none.
pub async fn connections(world: &World, like: &str) -> i64 {
    let matching = format!("db = '{}' AND id <> CONNECTION_ID() AND {like}", world.database());
    let mut session = Session::open(world).await;
    connection_ids(&mut session.0, &matching).await.last().copied().unwrap_or(0)
}

/// The connection that waits for the stock row.
pub async fn stuck(world: &World) -> i64 {
    let mut id = 0;
    eventually("a landing that waits for the stock row", async || {
        id = connections(world, "info LIKE 'UPDATE%sales%'").await;
        id != 0
    })
    .await;
    id
}

/// Waits until the purchase is an order by its status.
pub async fn lands(world: &World, sale: &SaleId, user: &str, id: RequestId) {
    eventually(user, async || world.status_of(sale, user, id).await.0 == "CONFIRMED").await;
}

/// The end: nothing waits, nothing was parked.
pub async fn drained(world: World) {
    eventually("empty queues", async || world.waiting_in("seckill.").await == 0).await;
    assert_eq!(world.rows("failed_request", "1 = 1").await, 0);
    world.finish().await;
}

/// A user without the rights of an administrator, as a consumer has in earnest; returns its address.
pub async fn plain_user(world: &World, name: &str) -> String {
    let url = world.settings.mysql.url.expose();
    let rights = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {}.* TO '{name}'@'127.0.0.1'", world.database());
    sql(url, &format!("DROP USER IF EXISTS '{name}'@'127.0.0.1'; CREATE USER '{name}'@'127.0.0.1'; {rights}")).await;
    url.replace("root@", &format!("{name}@"))
}
