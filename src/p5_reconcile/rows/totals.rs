//! The register of failures counted, and what ended orders brought back, for the console.

use crate::domain::ids::SaleId;
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::values::Values;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

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

impl BookRows {
    /// The register counted by sale and status: reads an index of it, not its rows.
    pub(crate) async fn registered(&self) -> Result<Vec<Registered>, DbError> {
        let query = "/* totals::registered */ SELECT sale_id, status, CAST(SUM(quantity) AS SIGNED) AS units, \
                 COUNT(*) AS rows_count FROM failed_request GROUP BY sale_id, status";
        let rows: Vec<RegisteredRow> =
            self.db.run("registered", async |conn| Ok(diesel::sql_query(query).load(conn).await?)).await?;
        rows.into_iter()
            .map(|row| {
                let sale_id = crate::store::mysql::codes::read_sale_id(&row.sale_id)?;
                Ok(Registered { sale_id, status: row.status, units: row.units, count: row.rows_count })
            })
            .collect()
    }
}

#[derive(QueryableByName)]
struct ReturnedRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = BigInt)]
    units: i64,
}

impl BookRows {
    /// Units that ended orders of these sales brought back so far; a sale without any is left out. Reads a row of the journal for each
    /// cancellation and each batch that expired.
    pub(crate) async fn returned(&self, sales: &[&SaleId]) -> Result<HashMap<SaleId, i64>, DbError> {
        if sales.is_empty() {
            return Ok(HashMap::new());
        }
        let mut ids = Values::list(sales.len());
        for sale in sales {
            ids.bytes(sale.as_str().as_bytes());
        }
        let query = format!(
            "/* totals::returned */ SELECT sale_id, CAST(SUM(delta) AS SIGNED) AS units FROM stock_flow \
         WHERE sale_id IN {} AND kind IN ('cancel', 'expire') GROUP BY sale_id",
            ids.finish()
        );
        let rows: Vec<ReturnedRow> =
            self.db.run("returned", async |conn| Ok(diesel::sql_query(&query).load(conn).await?)).await?;
        rows.into_iter().map(|row| Ok((crate::store::mysql::codes::read_sale_id(&row.sale_id)?, row.units))).collect()
    }
}
