//! Units that withdrawals on record took. Reads only.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

#[derive(QueryableByName)]
struct UnitsWithdrawn {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

const WITHDRAWN: &str = "/* books::withdrawn */ SELECT CAST(COALESCE(SUM(taken), 0) AS SIGNED) AS units \
    FROM stock_withdrawals WHERE sale_id = ?";

/// Units of all withdrawals of a sale that have ended.
pub(super) async fn withdrawn(conn: &mut Conn, sale: &[u8]) -> Result<i64, DbError> {
    let row: UnitsWithdrawn = diesel::sql_query(WITHDRAWN).bind::<Binary, _>(sale).get_result(conn).await?;
    Ok(row.units)
}

impl BookRows {
    /// The same, of this moment.
    pub(crate) async fn withdrawn(&self, sale_id: &SaleId) -> Result<i64, DbError> {
        self.db.run("books_withdrawn", async |conn| withdrawn(conn, sale_id.as_str().as_bytes()).await).await
    }
}
