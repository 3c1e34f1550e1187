//! The units that buyers own: where they are counted, and those of a sale (`purchases`) or of a drop (`drop_purchases`) compared with
//! the orders that count against their limits. Reads only.
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
pub struct LimitTable {
    pub(crate) table: &'static str,
    /// What the limit is of.
    pub(crate) column: &'static str,
    /// The beginning of an INSERT; its values are of the column, then the buyer and the units.
    pub(crate) insert: &'static str,
}

/// For cumulative limits of sales.
pub const PURCHASES: LimitTable = LimitTable {
    table: "purchases",
    column: "sale_id",
    insert: "/* landing */ INSERT INTO purchases (sale_id, user_id, quantity) VALUES ",
};
/// For drops.
pub const DROP_PURCHASES: LimitTable = LimitTable {
    table: "drop_purchases",
    column: "drop_id",
    insert: "/* landing */ INSERT INTO drop_purchases (drop_id, user_id, quantity) VALUES ",
};

/// A limit whose units are counted in a table: what it is of, and the sales it is over.
#[derive(Debug, Clone, Copy)]
pub struct CountedLimit<'a> {
    /// Where.
    pub counted_in: LimitTable,
    /// The id of the sale or the drop.
    pub id: &'a str,
    /// All sales whose orders count.
    pub sales: &'a [&'a SaleId],
}

/// Units of all buyers under a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct OwnedUnits {
    /// By the table that counts for the limit.
    #[diesel(sql_type = BigInt)]
    pub noted: i64,
    /// By the orders that count against a limit.
    #[diesel(sql_type = BigInt)]
    pub ordered: i64,
}

/// A buyer whose two sums differ.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct Differing {
    /// The buyer's id, as bytes: that of the person where limits are by person.
    #[diesel(sql_type = Binary)]
    pub user_id: Vec<u8>,
    /// By the table that counts for the limit.
    #[diesel(sql_type = BigInt)]
    pub noted: i64,
    /// By the orders that count against a limit.
    #[diesel(sql_type = BigInt)]
    pub ordered: i64,
}

impl CountedLimit<'_> {
    /// The sums; both 0 where a sale is being removed, whose orders go and whose units stay. Of the orders only those are read row by row
    /// that ended: a limit comes back with no other. The bounds instead of "=" and the named index: see `books::life`.
    fn sums(&self) -> String {
        let LimitTable { table, column, .. } = self.counted_in;
        let units = "SELECT COALESCE(SUM(quantity), 0) FROM orders FORCE INDEX (ix_orders_deadline) WHERE sale_id >= ? AND sale_id <= ?";
        let ended = "AND state IN ('EXPIRED', 'CANCELLED') AND limit_returned = 1";
        let of_sale = format!("CAST(({units}) AS SIGNED) - CAST(({units} {ended}) AS SIGNED)");
        let ordered = vec![of_sale; self.sales.len()].join(" + ");
        let noted = format!("CAST((SELECT COALESCE(SUM(quantity), 0) FROM {table} WHERE {column} = ?) AS SIGNED)");
        let going = format!("EXISTS (SELECT 1 FROM archived_sales WHERE sale_id IN ({}))", self.places());
        format!(
            "/* purchases::sums */ SELECT IF(going, 0, noted) AS noted, IF(going, 0, ordered) AS ordered FROM \
             (SELECT {going} AS going, {noted} AS noted, {ordered} AS ordered) AS sums"
        )
    }

    /// Each buyer's two sums; a buyer may be in one of the tables only. Sent on a difference only: it reads all orders.
    fn differing(&self, most: usize) -> String {
        let LimitTable { table, column, .. } = self.counted_in;
        format!(
            "/* purchases::differing */ SELECT user_id, CAST(SUM(noted) AS SIGNED) AS noted, \
             CAST(SUM(ordered) AS SIGNED) AS ordered FROM ( \
             SELECT user_id, quantity AS noted, 0 AS ordered FROM {table} WHERE {column} = ? UNION ALL \
             SELECT COALESCE(person, user_id) AS user_id, 0 AS noted, quantity AS ordered FROM orders FORCE INDEX (ix_orders_deadline) \
             WHERE sale_id IN ({}) AND limit_returned = 0 \
             ) AS units GROUP BY user_id HAVING noted <> ordered ORDER BY user_id LIMIT {most}",
            self.places()
        )
    }

    fn places(&self) -> String {
        vec!["?"; self.sales.len()].join(", ")
    }
}

impl OrderRows {
    /// The sums under a limit and up to `most` buyers whose own sums differ, in the order of their ids; `None`: the sums agree.
    pub async fn compare(
        &self,
        limit: CountedLimit<'_>,
        most: usize,
    ) -> Result<Option<(OwnedUnits, Vec<Differing>)>, DbError> {
        let id = limit.id.as_bytes();
        self.db
            .patient()
            .run("purchases_compare", async |conn| {
                let mut sums = diesel::sql_query(limit.sums()).into_boxed();
                for sale in limit.sales {
                    sums = sums.bind::<Binary, _>(sale.as_str().as_bytes());
                }
                sums = sums.bind::<Binary, _>(id);
                for sale in limit.sales {
                    for _ in 0..4 {
                        sums = sums.bind::<Binary, _>(sale.as_str().as_bytes());
                    }
                }
                let units: OwnedUnits = sums.get_result(conn).await?;
                if units.noted == units.ordered {
                    return Ok(None);
                }
                let mut differing = diesel::sql_query(limit.differing(most)).into_boxed().bind::<Binary, _>(id);
                for sale in limit.sales {
                    differing = differing.bind::<Binary, _>(sale.as_str().as_bytes());
                }
                Ok(Some((units, differing.load(conn).await?)))
            })
            .await
    }
}
