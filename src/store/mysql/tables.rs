//! Can every table be read, along each of its indexes? For `seckill doctor`: a database whose file was damaged may start and serve, until
//! somebody needs what is damaged.
//!
//! Input: nothing. Output: what the server says of tables that it cannot read. One row is read along each index, so it costs the same
//! for any number of orders; damage further on is found by CHECK TABLE only, which reads everything.

use super::fault::DbError;
use super::pool::{Conn, Db};
use super::rights::DENIED;
use diesel::QueryableByName;
use diesel::result::{DatabaseErrorKind, Error};
use diesel::sql_types::Text;
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};

#[derive(QueryableByName)]
struct TableName {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct IndexName {
    #[diesel(sql_type = Text, column_name = "Key_name")]
    name: String,
}

/// Each table that cannot be read, with the server's words.
pub(crate) async fn unreadable(db: &Db) -> Result<Vec<String>, DbError> {
    db.run("tables_unreadable", async |conn| {
        // Names alone: the server opens no table for them.
        let named = "SELECT CAST(table_name AS CHAR) AS name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1";
        let tables: Vec<TableName> = diesel::sql_query(named).load(conn).await?;
        let mut found = Vec::new();
        for TableName { name } in tables {
            match read_along_each_index(conn, &name).await {
                Ok(()) => {}
                Err(Error::DatabaseError(kind, words)) if !matches!(kind, DatabaseErrorKind::ClosedConnection) => {
                    // A right that is missing is another check's.
                    if !words.message().contains(DENIED) {
                        found.push(format!("{name}: {}", words.message()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    })
    .await
}

async fn read_along_each_index(conn: &mut Conn, table: &str) -> Result<(), Error> {
    let indexes: Vec<IndexName> = diesel::sql_query(format!("SHOW INDEX FROM `{table}`")).load(conn).await?;
    let mut read: Vec<String> = indexes
        .into_iter()
        .map(|index| format!("SELECT 1 FROM `{table}` FORCE INDEX (`{}`) LIMIT 1", index.name))
        .collect();
    // One with several columns is named once for each.
    read.dedup();
    for statement in read {
        conn.batch_execute(&statement).await?;
    }
    Ok(())
}
