//! The journal of a sale summed from where it was summed before: what is old enough once, the rest each time. Reads only.

use super::super::fault::DbError;
use super::super::pool::Conn;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Nullable, Unsigned};
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

/// How long a row is young, seconds: longer than any transaction that writes one stays open.
const YOUNG_S: u32 = 60;

#[derive(QueryableByName)]
struct JournalSumRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    last: u64,
    #[diesel(sql_type = BigInt)]
    sum: i64,
    #[diesel(sql_type = BigInt)]
    cancelled: i64,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    young_from: Option<u64>,
}

/// The journal above `after` (a range of `ix_flow_sale`, see `series`): the rows below the first young one, for which no lower number
/// can still be committed, and the rest. The clock is read once: where the first young row is. The border between the two sums is the
/// number of that row, in one snapshot: two reads of a clock leave out the rows that become old between them, and a
/// border in time is none for rows that were numbered in another order.
pub(super) async fn journal(conn: &mut Conn, sale: &[u8], after: u64) -> Result<[JournalSum; 2], DbError> {
    let all = sum(conn, sale, after).await?;
    let Some(young_from) = all.young_from else {
        let to = all.last.max(after);
        let old = JournalSum { to, sum: all.sum, cancelled: all.cancelled };
        return Ok([old, JournalSum { to, ..JournalSum::default() }]);
    };
    let to = young_from.saturating_sub(1);
    let young = sum(conn, sale, to).await?;
    let old = JournalSum { to, sum: all.sum - young.sum, cancelled: all.cancelled - young.cancelled };
    Ok([old, JournalSum { to: young.last, sum: young.sum, cancelled: young.cancelled }])
}

async fn sum(conn: &mut Conn, sale: &[u8], after: u64) -> Result<JournalSumRow, DbError> {
    let query = format!(
        "/* books::journal */ SELECT COALESCE(MAX(flow_id), 0) AS last, CAST(COALESCE(SUM(delta), 0) AS SIGNED) AS sum, \
         CAST(COALESCE(SUM(IF(kind IN ('cancel', 'expire'), delta, 0)), 0) AS SIGNED) AS cancelled, \
         MIN(IF(created_at >= NOW(3) - INTERVAL {YOUNG_S} SECOND, flow_id, NULL)) AS young_from \
         FROM stock_flow FORCE INDEX (ix_flow_sale) WHERE sale_id >= ? AND sale_id <= ? AND flow_id > ?"
    );
    Ok(diesel::sql_query(query)
        .bind::<Binary, _>(sale)
        .bind::<Binary, _>(sale)
        .bind::<Unsigned<BigInt>, _>(after)
        .get_result(conn)
        .await?)
}
