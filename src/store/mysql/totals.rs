//! The register of failures counted, for the console.

use super::fault::DbError;
use super::pool::Db;
use crate::domain::ids::SaleId;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

/// Rows of the register of one sale in one status: their number and the units that they want.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Registered {
    pub sale_id: SaleId,
    /// `open`, `failed_final` or `resolved`.
    pub status: String,
    pub units: i64,
    pub count: i64,
}

#[derive(QueryableByName)]
struct RegisteredRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = diesel::sql_types::Text)]
    status: String,
    #[diesel(sql_type = BigInt)]
    units: i64,
    #[diesel(sql_type = BigInt)]
    rows_count: i64,
}

/// The register counted by sale and status: reads an index of it, not its rows.
pub(crate) async fn registered(db: &Db) -> Result<Vec<Registered>, DbError> {
    let query = "/* totals::registered */ SELECT sale_id, status, CAST(SUM(quantity) AS SIGNED) AS units, \
                 COUNT(*) AS rows_count FROM failed_request GROUP BY sale_id, status";
    let rows: Vec<RegisteredRow> =
        db.run("registered", async |conn| Ok(diesel::sql_query(query).load(conn).await?)).await?;
    rows.into_iter()
        .map(|row| {
            let sale_id = super::codes::read_sale_id(&row.sale_id)?;
            Ok(Registered { sale_id, status: row.status, units: row.units, count: row.rows_count })
        })
        .collect()
}
