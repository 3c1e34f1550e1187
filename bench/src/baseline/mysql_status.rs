//! The database's own count of statements.

use diesel::sql_types::Text;
use diesel_async::RunQueryDsl;
use seckill::store::mysql::{Db, DbError};

#[derive(diesel::QueryableByName)]
struct StatusValue {
    #[diesel(sql_type = Text, column_name = "Value")]
    value: String,
}

/// Statements of clients since the server started, this one included.
///
/// # Errors
/// [`DbError`]; `Other` when the server has no such count.
pub async fn statements(db: &Db) -> Result<u64, DbError> {
    let query = diesel::sql_query("SHOW GLOBAL STATUS LIKE 'Questions'");
    let found: StatusValue = db.run("bench_statements", async |conn| Ok(query.get_result(conn).await?)).await?;
    found.value.parse().map_err(|_error| DbError::Other(format!("Questions is no number: {}", found.value)))
}
