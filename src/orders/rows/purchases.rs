//! The units that buyers own: where they are counted, and those of a sale (`purchases`) compared with the orders that count against their limits. Reads only.
//!
//! Each comparison is one statement, and so one moment of the database.

use crate::domain::ids::SaleId;
use crate::orders::rows::handles::OrderRows;
use crate::store::mysql::fault::DbError;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::RunQueryDsl;

/// Where the units of buyers are counted for a limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LimitTable {
    pub(crate) table: &'static str,
    /// What the limit is of.
    pub(crate) column: &'static str,
    /// The beginning of an INSERT; its values are of the column, then the buyer and the units.
    pub(crate) insert: &'static str,
}

/// For cumulative limits of sales.
pub(crate) const PURCHASES: LimitTable = LimitTable {
    table: "purchases",
    column: "sale_id",
    insert: "/* landing */ INSERT INTO purchases (sale_id, user_id, quantity) VALUES ",
};
/// For drops.
pub(crate) const DROP_PURCHASES: LimitTable = LimitTable {
    table: "drop_purchases",
    column: "drop_id",
    insert: "/* landing */ INSERT INTO drop_purchases (drop_id, user_id, quantity) VALUES ",
};

/// Units of all buyers of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct OwnedUnits {
    /// By `purchases`.
    #[diesel(sql_type = BigInt)]
    pub noted: i64,
    /// By the orders that count against a limit.
    #[diesel(sql_type = BigInt)]
    pub ordered: i64,
}

/// A buyer whose two sums differ.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct Differing {
    /// The buyer's id, as bytes.
    #[diesel(sql_type = Binary)]
    pub user_id: Vec<u8>,
    /// By `purchases`.
    #[diesel(sql_type = BigInt)]
    pub noted: i64,
    /// By the orders that count against a limit.
    #[diesel(sql_type = BigInt)]
    pub ordered: i64,
}

/// Each buyer's two sums; a buyer may be in one of the tables only. Sent on a difference only: it reads all orders of the sale.
const BY_BUYER: &str = "/* purchases::differing */ SELECT user_id, CAST(SUM(noted) AS SIGNED) AS noted, \
    CAST(SUM(ordered) AS SIGNED) AS ordered FROM ( \
    SELECT user_id, quantity AS noted, 0 AS ordered FROM purchases WHERE sale_id = ? UNION ALL \
    SELECT user_id, 0 AS noted, quantity AS ordered FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id = ? AND limit_returned = 0 \
    ) AS units GROUP BY user_id HAVING noted <> ordered ORDER BY user_id LIMIT";
/// Of the orders only those are read row by row that ended: a limit comes back with no other. The bounds instead of "=" and the named
/// index: see `books::life`.
const SUMS: &str = "/* purchases::sums */ SELECT \
    CAST((SELECT COALESCE(SUM(quantity), 0) FROM purchases WHERE sale_id = ?) AS SIGNED) AS noted, \
    CAST((SELECT COALESCE(SUM(quantity), 0) FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ?) AS SIGNED) - \
    CAST((SELECT COALESCE(SUM(quantity), 0) FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ? \
    AND state IN ('EXPIRED', 'CANCELLED') AND limit_returned = 1) AS SIGNED) AS ordered";

impl OrderRows {
    /// The sums of the sale, and when they differ up to `most` buyers whose own sums do, in the order of their ids.
    pub async fn compare(&self, sale_id: &SaleId, most: usize) -> Result<(OwnedUnits, Vec<Differing>), DbError> {
        let sale = sale_id.as_str().as_bytes();
        self.db
            .patient()
            .run("purchases_compare", async |conn| {
                let mut sums = diesel::sql_query(SUMS).into_boxed();
                for _ in 0..5 {
                    sums = sums.bind::<Binary, _>(sale);
                }
                let units: OwnedUnits = sums.get_result(conn).await?;
                if units.noted == units.ordered {
                    return Ok((units, Vec::new()));
                }
                let differing = diesel::sql_query(format!("{BY_BUYER} {most}"));
                Ok((units, differing.bind::<Binary, _>(sale).bind::<Binary, _>(sale).load(conn).await?))
            })
            .await
    }
}
