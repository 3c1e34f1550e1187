//! How many rows and index entries a handle of the database has read: counted by the server, in the sessions of the handle.

use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use seckill::store::mysql::{Db, DbConfig};

#[derive(QueryableByName)]
struct StatusCounter {
    #[diesel(sql_type = Text, column_name = "Variable_name")]
    name: String,
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// A handle with one connection for ordinary statements and one for patient ones, so that its sessions can be asked.
pub fn one_session(url: &str) -> Db {
    Db::connect(DbConfig { pool_max: 1, ..super::mysql_store::config(url.to_owned()) }).expect("a handle")
}

/// Rows and index entries that `db` has read so far. Nothing may use it meanwhile.
pub async fn rows_read(db: &Db) -> u64 {
    let mut sum = 0;
    for db in [db, db.patient()] {
        let status = db
            .run("test_status", async |conn| {
                Ok(diesel::sql_query("SHOW SESSION STATUS LIKE 'Handler_read_%'").load::<StatusCounter>(conn).await?)
            })
            .await
            .expect("the status");
        let counted = |row: &&StatusCounter| !row.name.ends_with("_retry") && !row.name.ends_with("_deleted");
        sum += status.iter().filter(counted).map(|row| row.value.parse::<u64>().expect("a number")).sum::<u64>();
    }
    sum
}
