//! The grants of a sale's epoch summed from where they were summed before: those that Redis was known to have a while ago once, the
//! rest each time. Reads only.

use crate::p5_reconcile::rows::books::journal::YOUNG_S;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use chrono::{DateTime, NaiveDateTime};
use diesel::QueryableByName;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, Unsigned};
use diesel_async::RunQueryDsl;

/// The grants of an epoch that Redis was known to have by a moment, in units. Such a mark is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GrantsSum {
    epoch: u32,
    /// By the database's clock. Younger marks may still be committed.
    to: NaiveDateTime,
    units: i64,
}

impl Default for GrantsSum {
    fn default() -> Self {
        Self { epoch: 0, to: DateTime::UNIX_EPOCH.naive_utc(), units: 0 }
    }
}

/// The grants of a sale.
#[derive(Debug, Clone, Copy)]
pub(super) struct GivenGrants {
    /// For the next read.
    pub settled: GrantsSum,
    /// Units of all grants of the epoch, with the grant of its rebuild.
    pub units: i64,
    /// Whether the grants of the epoch are all there.
    pub known: bool,
    /// Units that Redis is not known to have: of the epoch, or of all epochs where the grants of the epoch are not all there.
    pub unapplied: i64,
}

#[derive(QueryableByName)]
struct GivenRow {
    #[diesel(sql_type = BigInt)]
    units: i64,
    #[diesel(sql_type = BigInt)]
    settled: i64,
    #[diesel(sql_type = BigInt)]
    unapplied: i64,
    #[diesel(sql_type = Datetime)]
    border: NaiveDateTime,
}

#[derive(QueryableByName)]
struct UnitsOfGrants {
    #[diesel(sql_type = BigInt)]
    units: i64,
}

const UNAPPLIED: &str = "/* books::unapplied */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units \
    FROM stock_grants WHERE sale_id = ? AND applied_at IS NULL";
const REBUILD: &str = "/* books::rebuild */ SELECT COUNT(*) AS units FROM stock_grants \
    WHERE sale_id = ? AND grant_id = ? AND kind = 'rebuild' AND epoch = ?";

/// Sums the grants of `epoch`, behind `before` if that is of this epoch: two ranges of `ix_grants_epoch`, see `series`.
pub(super) async fn given(conn: &mut Conn, sale: &[u8], epoch: u32, before: GrantsSum) -> Result<GivenGrants, DbError> {
    let before = if before.epoch == epoch { before } else { GrantsSum { epoch, ..GrantsSum::default() } };
    // One statement has one clock: the border of the sum is the border that the next read begins at.
    let query = format!(
        "/* books::grants */ SELECT CAST(COALESCE(SUM(quantity), 0) AS SIGNED) AS units, \
         CAST(COALESCE(SUM(IF(applied_at <= NOW(3) - INTERVAL {YOUNG_S} SECOND, quantity, 0)), 0) AS SIGNED) AS settled, \
         CAST(COALESCE(SUM(IF(applied_at IS NULL, quantity, 0)), 0) AS SIGNED) AS unapplied, \
         NOW(3) - INTERVAL {YOUNG_S} SECOND AS border FROM stock_grants FORCE INDEX (ix_grants_epoch) \
         WHERE sale_id >= ? AND sale_id <= ? AND epoch >= ? AND epoch <= ? AND (applied_at IS NULL OR applied_at > ?)"
    );
    let row: GivenRow = diesel::sql_query(query)
        .bind::<Binary, _>(sale)
        .bind::<Binary, _>(sale)
        .bind::<Unsigned<Integer>, _>(epoch)
        .bind::<Unsigned<Integer>, _>(epoch)
        .bind::<Datetime, _>(before.to)
        .get_result(conn)
        .await?;
    let settled = GrantsSum { epoch, to: row.border.max(before.to), units: before.units + row.settled };
    let units = before.units + row.units;
    let known = epoch == 1 || is_rebuilt(conn, sale, epoch).await?;
    let unapplied = if known { row.unapplied } else { unapplied(conn, sale).await? };
    Ok(GivenGrants { settled, units, known, unapplied })
}

/// Whether the epoch was opened by a build that writes grants by epoch.
async fn is_rebuilt(conn: &mut Conn, sale: &[u8], epoch: u32) -> Result<bool, DbError> {
    let row: UnitsOfGrants = diesel::sql_query(REBUILD)
        .bind::<Binary, _>(sale)
        .bind::<Binary, _>(format!("rebuild-{epoch}").into_bytes())
        .bind::<Unsigned<Integer>, _>(epoch)
        .get_result(conn)
        .await?;
    Ok(row.units > 0)
}

async fn unapplied(conn: &mut Conn, sale: &[u8]) -> Result<i64, DbError> {
    let row: UnitsOfGrants = diesel::sql_query(UNAPPLIED).bind::<Binary, _>(sale).get_result(conn).await?;
    Ok(row.units)
}
