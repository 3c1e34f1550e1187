//! The journal of a sale summed from where it was summed before: what is old enough once, the rest each time.

use super::super::fault::DbError;
use super::super::pool::Conn;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Unsigned};
use diesel_async::RunQueryDsl;

/// The journal of a sale summed, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalSum {
    /// Rows up to this one are in the sums. Younger rows may still be committed with lower numbers.
    pub to: u64,
    /// Sum of `delta`.
    pub sum: i64,
    /// The part of it that orders brought back: cancelled ones, and those that ended unpaid.
    pub cancelled: i64,
}

#[derive(QueryableByName)]
struct JournalSumRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    last: u64,
    #[diesel(sql_type = BigInt)]
    sum: i64,
    #[diesel(sql_type = BigInt)]
    cancelled: i64,
}

/// The journal above `after` (a range of `ix_flow_sale`, see `series`): what is old enough that no lower number can still be committed, and the rest.
pub(super) async fn journal(conn: &mut Conn, sale: &[u8], after: u64) -> Result<[JournalSum; 2], DbError> {
    let mut flows = [JournalSum::default(); 2];
    for (flow, age) in flows.iter_mut().zip(["<", ">="]) {
        let query = format!(
            "/* books::journal */ SELECT COALESCE(MAX(flow_id), 0) AS last, \
             CAST(COALESCE(SUM(delta), 0) AS SIGNED) AS sum, \
             CAST(COALESCE(SUM(IF(kind IN ('cancel', 'expire'), delta, 0)), 0) AS SIGNED) AS cancelled \
             FROM stock_flow FORCE INDEX (ix_flow_sale) WHERE sale_id >= ? AND sale_id <= ? AND flow_id > ? AND created_at {age} NOW(3) - INTERVAL 60 SECOND"
        );
        let row: JournalSumRow = diesel::sql_query(query)
            .bind::<Binary, _>(sale)
            .bind::<Binary, _>(sale)
            .bind::<Unsigned<BigInt>, _>(after)
            .get_result(conn)
            .await?;
        *flow = JournalSum { to: row.last.max(after), sum: row.sum, cancelled: row.cancelled };
    }
    Ok(flows)
}
