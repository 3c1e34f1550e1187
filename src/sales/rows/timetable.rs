//! Timetables of sales as the database knows them (`sale_releases`, `sale_rollovers`, `sale_lines`), and what of them is due.
//!
//! Input: a timetable, in the transaction that creates its sale; then nothing. Output: its rows, which never change. Whether a release
//! was given, its grant says; how often units rolled over, the withdrawals say.

use self::schema::{sale_releases, sale_rollovers};
use crate::domain::grant_names::{RELEASE, ROLLOVER};
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::domain::timetable::{Release, Timetable};
use crate::sales::rows::{SaleRows, lines};
use crate::store::mysql::codes::{datetime, read_sale_id, unix_ms};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Datetime, Integer, SmallInt, Unsigned};
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

#[allow(missing_docs, reason = "the migrations say what each column is")]
mod schema {
    diesel::table! {
        sale_releases (sale_id, release_no) {
            sale_id -> Binary,
            release_no -> Unsigned<SmallInt>,
            releases_at -> Datetime,
            quantity -> Unsigned<Integer>,
        }
    }

    diesel::table! {
        sale_rollovers (sale_id) {
            sale_id -> Binary,
            moves_to -> Binary,
        }
    }
}

/// How long after its end the units of a sale move, seconds: Redis' clock decides which purchase came in time.
const ROLLS_AFTER_S: u32 = 2;
/// Sales of which the next release is listed.
const NEXT_MAX: usize = 1_000;
/// The grant of a release, in SQL.
const GIVEN: &str = "g.sale_id = r.sale_id AND g.grant_id = CAST(CONCAT(?, r.release_no) AS BINARY)";

/// A timetable, and how far it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownTimetable {
    /// As it was created.
    pub timetable: Timetable,
    /// Whether each of its releases was given.
    pub given: Vec<bool>,
}

impl KnownTimetable {
    /// Units of the releases that were given.
    pub(crate) fn given_units(&self) -> i64 {
        let given = self.timetable.releases.iter().zip(&self.given).filter(|(_, given)| **given);
        given.map(|(release, _)| i64::from(release.units)).sum()
    }
}

/// A release that was not given yet, of a sale that is warmed or paused.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct DueRelease {
    /// The sale.
    #[diesel(sql_type = Binary)]
    pub sale_id: SaleId,
    /// From 1.
    #[diesel(sql_type = Unsigned<SmallInt>)]
    pub(crate) release_no: u16,
    #[diesel(sql_type = Unsigned<Integer>)]
    pub(crate) quantity: u32,
    /// By the database's clock; 0 or less: it is due.
    #[diesel(sql_type = BigInt)]
    pub(crate) due_in_ms: i64,
}

/// A sale that is warmed or paused, with units that are to go to another sale.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct DueRollover {
    /// The sale that they leave.
    #[diesel(sql_type = Binary)]
    pub sale_id: SaleId,
    /// The sale that gets them.
    #[diesel(sql_type = Binary)]
    pub(crate) moves_to: SaleId,
    /// By the database's clock; 0 or less: it is due.
    #[diesel(sql_type = BigInt)]
    pub(crate) due_in_ms: i64,
}

#[derive(QueryableByName)]
struct ReleaseRow {
    #[diesel(sql_type = Binary)]
    sale_id: Vec<u8>,
    #[diesel(sql_type = Datetime)]
    releases_at: NaiveDateTime,
    #[diesel(sql_type = Unsigned<Integer>)]
    quantity: u32,
    #[diesel(sql_type = BigInt)]
    given: i64,
}

#[derive(QueryableByName)]
struct NextRelease {
    #[diesel(sql_type = Binary)]
    sale_id: SaleId,
    #[diesel(sql_type = Datetime)]
    releases_at: NaiveDateTime,
}

#[derive(QueryableByName)]
struct Highest {
    #[diesel(sql_type = BigInt)]
    highest: i64,
}

/// Inside the transaction that creates the sale.
pub(super) async fn insert(conn: &mut Conn, sale_id: &SaleId, timetable: &Timetable) -> Result<(), DbError> {
    let sale = sale_id.as_str().as_bytes();
    for (number, release) in (1_u16..).zip(&timetable.releases) {
        let row = (
            sale_releases::sale_id.eq(sale),
            sale_releases::release_no.eq(number),
            sale_releases::releases_at.eq(datetime(release.at_ms)?),
            sale_releases::quantity.eq(release.units),
        );
        diesel::insert_into(sale_releases::table).values(row).execute(conn).await?;
    }
    if let Some(to) = &timetable.rollover_to {
        let row = (sale_rollovers::sale_id.eq(sale), sale_rollovers::moves_to.eq(to.as_str().as_bytes()));
        diesel::insert_into(sale_rollovers::table).values(row).execute(conn).await?;
    }
    match timetable.line {
        Some(line) => lines::insert(conn, sale_id, line).await,
        None => Ok(()),
    }
}

/// The sales that sell, in SQL.
fn selling() -> String {
    format!("s.status IN ('{}', '{}')", SaleStatus::Warmed.code(), SaleStatus::Paused.code())
}

impl SaleRows {
    /// The timetables of these sales; of a sale without one there is none.
    pub(crate) async fn timetables(&self, ids: &[&SaleId]) -> Result<HashMap<SaleId, KnownTimetable>, DbError> {
        let mut found: HashMap<SaleId, KnownTimetable> = HashMap::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let places = vec!["?"; ids.len()].join(", ");
        let query = format!(
            "SELECT r.sale_id, r.releases_at, r.quantity, CAST(g.grant_id IS NOT NULL AS SIGNED) AS given \
             FROM sale_releases r LEFT JOIN stock_grants g ON {GIVEN} WHERE r.sale_id IN ({places}) \
             ORDER BY r.sale_id, r.release_no"
        );
        let keys: Vec<&[u8]> = ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let (releases, rollovers, lines) = self
            .db
            .run("sale_timetables", async |conn| {
                let mut releases = diesel::sql_query(&query).into_boxed().bind::<Binary, _>(RELEASE.as_bytes());
                for key in &keys {
                    releases = releases.bind::<Binary, _>(*key);
                }
                let releases: Vec<ReleaseRow> = releases.load(conn).await?;
                let rollovers = sale_rollovers::table.filter(sale_rollovers::sale_id.eq_any(&keys));
                let rollovers: Vec<(SaleId, SaleId)> = rollovers.load(conn).await?;
                Ok((releases, rollovers, lines::plans(conn, &keys).await?))
            })
            .await?;
        for row in releases {
            let of_sale = found.entry(read_sale_id(&row.sale_id)?).or_default();
            of_sale.timetable.releases.push(Release { at_ms: unix_ms(row.releases_at), units: row.quantity });
            of_sale.given.push(row.given != 0);
        }
        for (sale_id, moves_to) in rollovers {
            found.entry(sale_id).or_default().timetable.rollover_to = Some(moves_to);
        }
        for (sale_id, line) in lines {
            found.entry(sale_id).or_default().timetable.line = Some(line);
        }
        Ok(found)
    }

    /// The timetable of a sale; without one it is empty.
    pub(crate) async fn timetable(&self, id: &SaleId) -> Result<KnownTimetable, DbError> {
        Ok(self.timetables(&[id]).await?.remove(id).unwrap_or_default())
    }

    /// When each sale that sells gets its next units, Unix milliseconds, of [`NEXT_MAX`] sales at most.
    pub(crate) async fn next_releases(&self) -> Result<HashMap<SaleId, i64>, DbError> {
        let query = format!(
            "/* timetable::next */ SELECT r.sale_id, MIN(r.releases_at) AS releases_at FROM sales s \
             JOIN sale_releases r ON r.sale_id = s.sale_id LEFT JOIN stock_grants g ON {GIVEN} \
             WHERE {} AND g.grant_id IS NULL GROUP BY r.sale_id ORDER BY releases_at LIMIT {NEXT_MAX}",
            selling()
        );
        let next = diesel::sql_query(query).bind::<Binary, _>(RELEASE.as_bytes());
        let rows: Vec<NextRelease> =
            self.db.run("timetable_next_releases", async |conn| Ok(next.load(conn).await?)).await?;
        Ok(rows.into_iter().map(|row| (row.sale_id, unix_ms(row.releases_at))).collect())
    }

    /// Releases that were not given yet, the earliest first, `limit` at most: those that are due, then those that come.
    pub async fn due_releases(&self, limit: usize) -> Result<Vec<DueRelease>, DbError> {
        let query = format!(
            "/* timetable::releases */ SELECT r.sale_id, r.release_no, r.quantity, \
             CAST(TIMESTAMPDIFF(MICROSECOND, NOW(3), r.releases_at) DIV 1000 AS SIGNED) AS due_in_ms \
             FROM sales s JOIN sale_releases r ON r.sale_id = s.sale_id LEFT JOIN stock_grants g ON {GIVEN} \
             WHERE {} AND g.grant_id IS NULL ORDER BY r.releases_at, r.sale_id, r.release_no LIMIT {limit}",
            selling()
        );
        let due = diesel::sql_query(query).bind::<Binary, _>(RELEASE.as_bytes());
        self.db.run("timetable_releases", async |conn| Ok(due.load(conn).await?)).await
    }

    /// Sales with unsold units that another sale gets at their end, the earliest end first, `limit` at most: those that are due, then
    /// those that come. None whose target is closed or has ended, and none that units leave already.
    pub async fn due_rollovers(&self, limit: usize) -> Result<Vec<DueRollover>, DbError> {
        let query = format!(
            "/* timetable::rollovers */ SELECT s.sale_id, o.moves_to, \
             CAST(TIMESTAMPDIFF(MICROSECOND, NOW(3), s.ends_at) DIV 1000 AS SIGNED) + {ROLLS_AFTER_S}000 AS due_in_ms \
             FROM sales s JOIN sale_rollovers o ON o.sale_id = s.sale_id JOIN sales t ON t.sale_id = o.moves_to \
             WHERE {} AND s.stock > 0 AND t.status <> '{}' AND t.ends_at > NOW(3) AND NOT EXISTS \
             (SELECT 1 FROM stock_withdrawals w WHERE w.sale_id = s.sale_id AND w.taken IS NULL) \
             ORDER BY s.ends_at, s.sale_id LIMIT {limit}",
            selling(),
            SaleStatus::Closed.code()
        );
        let due = diesel::sql_query(query);
        self.db.run("timetable_rollovers", async |conn| Ok(due.load(conn).await?)).await
    }

    /// The name of the next rollover between these sales. A name is one of both: several sales may move to one.
    pub(crate) async fn next_rollover(&self, from: &SaleId, to: &SaleId) -> Result<String, DbError> {
        let query = "SELECT COALESCE(MAX(CAST(SUBSTRING(CONVERT(name USING utf8mb4), ?) AS SIGNED)), 0) AS highest \
             FROM stock_withdrawals WHERE (sale_id = ? OR moves_to = ?) AND name LIKE ?";
        let after = i32::try_from(ROLLOVER.len() + 1).unwrap_or(i32::MAX);
        let found: Highest = self
            .db
            .run("timetable_next", async |conn| {
                let highest = diesel::sql_query(query)
                    .bind::<Integer, _>(after)
                    .bind::<Binary, _>(from.as_str().as_bytes())
                    .bind::<Binary, _>(to.as_str().as_bytes())
                    .bind::<Binary, _>(format!("{ROLLOVER}%").into_bytes());
                Ok(highest.get_result(conn).await?)
            })
            .await?;
        Ok(format!("{ROLLOVER}{}", found.highest + 1))
    }
}
