//! The journal of a sale summed from where it was summed before: what is old enough once, the rest each time. Reads only.

use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Nullable, Unsigned};
use diesel_async::RunQueryDsl;

/// How long a row is young, seconds: longer than any transaction that writes one stays open.
pub(super) const YOUNG_S: u32 = 60;

/// The journal of a sale summed, in units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalSum {
    /// Rows up to this one are in the sums.
    pub to: u64,
    /// Sum of `delta`.
    pub sum: i64,
    /// The part of it that orders brought back which were cancelled.
    pub cancelled: i64,
    /// The part of it that orders brought back which ended unpaid.
    pub expired: i64,
    /// Units that withdrawals took out of it.
    pub withdrawn: i64,
}

impl JournalSum {
    /// Units that ended orders brought back.
    #[must_use]
    pub const fn returned(self) -> i64 {
        self.cancelled + self.expired
    }

    const fn and(self, later: &JournalRow) -> Self {
        let to = if later.last > self.to { later.last } else { self.to };
        let (sum, cancelled, expired) =
            (self.sum + later.sum, self.cancelled + later.cancelled, self.expired + later.expired);
        Self { to, sum, cancelled, expired, withdrawn: self.withdrawn + later.withdrawn }
    }
}

/// The whole journal, and the part of it that need not be read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Journal {
    /// All rows.
    pub all: JournalSum,
    /// The rows below the first young one: no lower number can still be committed.
    pub settled: JournalSum,
}

#[derive(QueryableByName)]
struct JournalRow {
    #[diesel(sql_type = Unsigned<BigInt>)]
    last: u64,
    #[diesel(sql_type = BigInt)]
    sum: i64,
    #[diesel(sql_type = BigInt)]
    cancelled: i64,
    #[diesel(sql_type = BigInt)]
    expired: i64,
    #[diesel(sql_type = BigInt)]
    withdrawn: i64,
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    young_from: Option<u64>,
}

/// Sums the journal behind `before` (a range of `ix_flow_sale`, see `series`). The clock is read once: where the first young row is. The
/// border between the two sums is the number of that row, in one snapshot: two reads of a clock leave out the rows
/// that become old between them, and a border in time is none for rows that were numbered in another order.
pub(crate) async fn journal(conn: &mut Conn, sale: &[u8], before: JournalSum) -> Result<Journal, DbError> {
    let later = rows(conn, sale, before.to).await?;
    let all = before.and(&later);
    let Some(young_from) = later.young_from else { return Ok(Journal { all, settled: all }) };
    let young = rows(conn, sale, young_from.saturating_sub(1)).await?;
    let settled = JournalSum {
        to: young_from.saturating_sub(1),
        sum: all.sum - young.sum,
        cancelled: all.cancelled - young.cancelled,
        expired: all.expired - young.expired,
        withdrawn: all.withdrawn - young.withdrawn,
    };
    Ok(Journal { all, settled })
}

async fn rows(conn: &mut Conn, sale: &[u8], after: u64) -> Result<JournalRow, DbError> {
    let query = format!(
        "/* books::journal */ SELECT COALESCE(MAX(flow_id), 0) AS last, CAST(COALESCE(SUM(delta), 0) AS SIGNED) AS sum, \
         CAST(COALESCE(SUM(IF(kind = 'cancel', delta, 0)), 0) AS SIGNED) AS cancelled, \
         CAST(COALESCE(SUM(IF(kind = 'expire', delta, 0)), 0) AS SIGNED) AS expired, \
         CAST(COALESCE(SUM(IF(kind = 'grant' AND delta < 0, -delta, 0)), 0) AS SIGNED) AS withdrawn, \
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
