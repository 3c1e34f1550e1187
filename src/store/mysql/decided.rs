//! Everything that was decided for a sale, in pages, for the rebuild of Redis (E7).

use super::codes::{read_fate, read_request_id, read_user_id, unix_ms, unreadable};
use super::fault::DbError;
use super::pool::Db;
use crate::domain::fate::Fate;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::policy::Quantity;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, Nullable, Text, Unsigned};
use diesel_async::RunQueryDsl;

/// Most rows of a page.
pub const PAGE_MAX: usize = 1000;

/// One decided request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecidedRequest {
    /// The request.
    pub request_id: RequestId,
    /// Its fate.
    pub fate: Fate,
    /// The buyer.
    pub user_id: UserId,
    /// Units.
    pub quantity: Quantity,
    /// Epoch at acceptance.
    pub epoch: u32,
    /// Acceptance number.
    pub number: u64,
    /// When it was accepted (an order) or recorded (a failure), Unix milliseconds.
    pub at_ms: i64,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Unsigned<BigInt>)]
    request_id: u64,
    #[diesel(sql_type = Text)]
    kind: String,
    #[diesel(sql_type = Nullable<Text>)]
    reason: Option<String>,
    #[diesel(sql_type = Binary)]
    user_id: Vec<u8>,
    #[diesel(sql_type = Unsigned<Integer>)]
    quantity: u32,
    #[diesel(sql_type = Unsigned<Integer>)]
    epoch: u32,
    #[diesel(sql_type = Unsigned<BigInt>)]
    number: u64,
    #[diesel(sql_type = Datetime)]
    decided_at: NaiveDateTime,
}

/// One page of what was decided for a sale, by request id, after `after`.
///
/// # Errors
/// [`DbError`], `Other` when a row cannot be read.
pub async fn page(db: &Db, sale_id: &SaleId, after: Option<RequestId>) -> Result<Vec<DecidedRequest>, DbError> {
    let sale = sale_id.as_str().as_bytes();
    let rows: Vec<Row> = db
        .run("decided_page", async |conn| {
            Ok(diesel::sql_query(
                "/* decided::page */ SELECT r.request_id, r.kind, r.reason, COALESCE(o.user_id, f.user_id) AS user_id, \
                 COALESCE(o.quantity, f.quantity) AS quantity, r.epoch, r.number, \
                 COALESCE(o.accepted_at, r.created_at) AS decided_at \
                 FROM request_outcome r LEFT JOIN orders o ON o.request_id = r.request_id \
                 LEFT JOIN failed_request f ON f.request_id = r.request_id \
                 WHERE r.sale_id = ? AND r.request_id > ? AND COALESCE(o.user_id, f.user_id) IS NOT NULL \
                 ORDER BY r.request_id LIMIT 1000",
            )
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<BigInt>, _>(after.map_or(0, RequestId::get))
            .load(conn)
            .await?)
        })
        .await?;
    rows.into_iter()
        .map(|row| {
            Ok(DecidedRequest {
                request_id: read_request_id(row.request_id)?,
                fate: read_fate(&row.kind, row.reason.as_deref())?,
                user_id: read_user_id(&row.user_id)?,
                quantity: Quantity::new(row.quantity).ok_or_else(|| unreadable("quantity", "0"))?,
                epoch: row.epoch,
                number: row.number,
                at_ms: unix_ms(row.decided_at),
            })
        })
        .collect()
}

#[derive(QueryableByName)]
struct Units {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

/// What Redis may sell after a rebuild, in units: the grants it was known to have, less orders (cancelled ones too: their
/// units came back as a grant), less final failures (only
/// `sale reclaim` sells those again, and its grants are among the first). Never more than the database's own stock.
///
/// # Errors
/// [`DbError`].
pub async fn sellable(db: &Db, sale_id: &SaleId) -> Result<i64, DbError> {
    let sale = sale_id.as_str().as_bytes();
    db.run("decided_sellable", async |conn| {
        let units: Units = diesel::sql_query(
            "/* decided::sellable */ SELECT CAST(GREATEST(0, LEAST(s.stock, \
             (SELECT COALESCE(SUM(quantity), 0) FROM stock_grants WHERE sale_id = s.sale_id AND applied_at IS NOT NULL) \
             - (SELECT COALESCE(SUM(quantity), 0) FROM orders WHERE sale_id = s.sale_id) \
             - (SELECT COALESCE(SUM(f.quantity), 0) FROM failed_request f JOIN request_outcome r USING (request_id) \
                WHERE r.sale_id = s.sale_id AND r.kind = 'FAILED'))) AS SIGNED) AS units FROM sales s WHERE s.sale_id = ?",
        )
        .bind::<Binary, _>(sale)
        .get_result(conn)
        .await?;
        Ok(units.units)
    })
    .await
}
