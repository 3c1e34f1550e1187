//! One leader at a time, to save work: `GET_LOCK` on a connection of its own.
//!
//! It saves work only. Two leaders do no harm (window 93): every write is safe by primary key. A leader that dies loses the
//! lock with its connection; one that stands still, or that the network has cut off, keeps neither for longer than
//! [`LEASE_S`] (window 94).

use super::fault::DbError;
use super::pool::{Conn, Db};
use super::sessions::IDLE_S;
use diesel::sql_types::{Integer, Nullable, Text};
use diesel_async::RunQueryDsl;

/// A leader whose lock connection is idle for this long loses the lock, in seconds: the server closes the connection.
/// Long against the pauses of a busy process, short against `p5_reconcile.window_ms`.
pub const LEASE_S: u32 = IDLE_S;

/// Leadership under a name, within this database. Dropping it closes its connection, which releases it.
pub struct Leadership {
    conn: Conn,
    /// The place of the server that has the lock.
    server: usize,
    name: String,
    db: Db,
}

#[derive(diesel::QueryableByName)]
struct LockAnswer {
    #[diesel(sql_type = Nullable<Integer>)]
    answer: Option<i32>,
}

/// Lock names are global to the server and at most 64 characters: the database goes in, hashed (not with
/// MD5, which newer MySQL servers lack).
const LOCK_NAME: &str = "CONCAT('seckill.', LEFT(SHA2(CONCAT(DATABASE(), '.', ?), 256), 40))";

/// Becomes leader under `name` if there is none; does not wait.
pub async fn try_lead(db: &Db, name: &str) -> Result<Option<Leadership>, DbError> {
    let (conn, server) = db.dedicated().await?;
    let mut leadership = Leadership { conn, server, name: name.to_owned(), db: db.clone() };
    let got = leadership.ask(&format!("SELECT GET_LOCK({LOCK_NAME}, 0) AS answer")).await?;
    Ok((got == Some(1)).then_some(leadership))
}

/// Whether no process leads under `name` at the moment.
pub(super) async fn is_free(db: &Db, name: &str) -> Result<bool, DbError> {
    let query = format!("SELECT IS_FREE_LOCK({LOCK_NAME}) AS answer");
    let found: LockAnswer = db
        .run("leader_is_free", async |conn| Ok(diesel::sql_query(query).bind::<Text, _>(name).get_result(conn).await?))
        .await?;
    Ok(found.answer == Some(1))
}

/// Who has a lock.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, diesel::QueryableByName, utoipa::ToSchema)]
pub(crate) struct Holder {
    /// Its connection to the database.
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    pub connection: i64,
    /// Host and port it comes from; absent when the user may not see it.
    #[diesel(sql_type = Nullable<Text>)]
    pub host: Option<String>,
}

/// The leader under `name`; `None` when there is none. Reads only.
pub(crate) async fn holder(db: &Db, name: &str) -> Result<Option<Holder>, DbError> {
    let query = format!(
        "/* leader::holder */ SELECT CAST(held.id AS SIGNED) AS connection, CAST(p.HOST AS CHAR) AS host \
         FROM (SELECT IS_USED_LOCK({LOCK_NAME}) AS id) AS held \
         LEFT JOIN information_schema.PROCESSLIST p ON p.ID = held.id WHERE held.id IS NOT NULL"
    );
    let found: Vec<Holder> = db
        .run("leader_holder", async |conn| Ok(diesel::sql_query(query).bind::<Text, _>(name).load(conn).await?))
        .await?;
    Ok(found.into_iter().next())
}

impl Leadership {
    /// Whether this is still the leader. Asking renews the lease. After an error it is not, nor when the database is another
    /// server by now.
    pub async fn holds(&mut self) -> Result<bool, DbError> {
        if !self.db.uses(self.server) {
            return Ok(false);
        }
        let holds = self.ask(&format!("SELECT IS_USED_LOCK({LOCK_NAME}) = CONNECTION_ID() AS answer")).await?;
        Ok(holds == Some(1))
    }

    async fn ask(&mut self, query: &str) -> Result<Option<i32>, DbError> {
        let asking =
            diesel::sql_query(query).bind::<Text, _>(self.name.as_str()).get_result::<LockAnswer>(&mut self.conn);
        match tokio::time::timeout(self.db.deadline(), asking).await {
            Ok(answer) => Ok(answer?.answer),
            Err(_elapsed) => Err(DbError::Timeout("the leader's lock".to_owned())),
        }
    }
}
