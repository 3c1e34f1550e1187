//! The rows of one sale read, summed and removed in pages, for `sale archive`, and what is kept of a sale that was removed.
//!
//! Every statement is a range of one index (why `>=` and `<=` of the same value: `books::series`), bounded by a page of
//! a walk ([`ArchiveTable::sections`]); the caller goes on from the key that it got. A crash while rows are removed
//! leaves the rest of them, the row of `sales` and the row of `archived_sales`: the next walk goes on. Payments are read and summed
//! only: their rows stay. What buyers have in a drop goes with the last of its sales: it is the sum of the exported orders.

mod line;
mod sections;
mod table;
mod tables;

pub(crate) use sections::Section;
pub(crate) use table::ArchiveTable;
pub use tables::TABLES;

use crate::domain::drops::SalesDrop;
use crate::domain::ids::SaleId;
use crate::sales::rows::archived;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::schema::archived_sales;
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary, Nullable, Text, Unsigned};
use diesel_async::{RunQueryDsl, SimpleAsyncConnection};
use std::iter;

mysql_handle! {
    /// The rows of a sale that is archived.
    ArchiveRows
}

/// Keys of one page. A few thousand: no transaction holds locks for long, and replicas follow.
pub(crate) const PAGE: u32 = 2_000;

/// Where a page ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PageKey {
    Number(u64),
    /// Text, compared byte for byte.
    Bytes(Vec<u8>),
}

impl PageKey {
    /// Before the first one of a table.
    #[must_use]
    pub(crate) const fn before_all(table: &ArchiveTable) -> Self {
        if table.text { Self::Bytes(Vec::new()) } else { Self::Number(0) }
    }

    /// As it stands in a statement: only digits, or hexadecimal ones.
    fn literal(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Bytes(bytes) => {
                let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("X'{hex}'")
            }
        }
    }
}

/// A page of a walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArchivePage<'a> {
    pub table: &'a ArchiveTable,
    /// The part of the walk.
    pub section: &'a Section,
    /// Keys above this one.
    pub after: &'a PageKey,
    /// Up to this one.
    pub to: &'a PageKey,
}

impl ArchivePage<'_> {
    fn matching(&self) -> String {
        let Section { filter, key, .. } = self.section;
        let (of, after, to) = (self.table.of, self.after.literal(), self.to.literal());
        format!("{of}.sale_id >= ? AND {of}.sale_id <= ? AND {filter} AND {key} > {after} AND {key} <= {to}")
    }
}

/// Rows and their units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct ArchiveSum {
    /// Number of rows.
    pub rows: u64,
    /// Units of them; 0 in a table that has none.
    pub units: i64,
}

impl std::ops::AddAssign for ArchiveSum {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.units += other.units;
    }
}

#[derive(diesel::QueryableByName)]
struct NumberRow {
    #[diesel(sql_type = Nullable<Unsigned<BigInt>>)]
    at: Option<u64>,
}

#[derive(diesel::QueryableByName)]
struct BytesRow {
    #[diesel(sql_type = Nullable<Binary>)]
    at: Option<Vec<u8>>,
}

#[derive(diesel::QueryableByName)]
struct SumRow {
    #[diesel(sql_type = BigInt)]
    counted: i64,
    #[diesel(sql_type = BigInt)]
    units: i64,
}

impl SumRow {
    fn read(self) -> ArchiveSum {
        ArchiveSum { rows: u64::try_from(self.counted).unwrap_or(0), units: self.units }
    }
}

#[derive(diesel::QueryableByName)]
struct LineRow {
    #[diesel(sql_type = Text)]
    line: String,
    #[diesel(sql_type = BigInt)]
    units: i64,
}

impl ArchiveRows {
    /// Where the page behind `after` ends; `None` when there is nothing behind it.
    pub(crate) async fn page_end(
        &self,
        sale_id: &SaleId,
        table: &ArchiveTable,
        section: &Section,
        after: &PageKey,
    ) -> Result<Option<PageKey>, DbError> {
        let (sale, Section { filter, key, order }) = (sale_id.as_str().as_bytes(), section);
        let (of, spine, above) = (table.of, table.spine, after.literal());
        let query = format!(
            "/* archive::page_end */ SELECT MAX(k) AS at FROM (SELECT {key} AS k FROM {spine} \
         WHERE {of}.sale_id >= ? AND {of}.sale_id <= ? AND {filter} AND {key} > {above} ORDER BY {order}, {key} LIMIT {PAGE}) AS page"
        );
        let text = table.text;
        self.db
            .patient()
            .run("archive_page_end", async |conn| {
                let query = diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale);
                if text {
                    let row: BytesRow = query.get_result(conn).await?;
                    return Ok(row.at.map(PageKey::Bytes));
                }
                let row: NumberRow = query.get_result(conn).await?;
                Ok(row.at.map(PageKey::Number))
            })
            .await
    }

    /// The rows of a page, each a JSON object in one line, and their sum.
    pub(crate) async fn lines(
        &self,
        sale_id: &SaleId,
        page: ArchivePage<'_>,
    ) -> Result<(Vec<String>, ArchiveSum), DbError> {
        let (sale, table) = (sale_id.as_str().as_bytes(), page.table);
        let query = format!(
            "/* archive::lines */ SELECT {} AS line, CAST({} AS SIGNED) AS units FROM {} WHERE {} ORDER BY {}, {}",
            table.line(),
            table.units_of_row(),
            table.from,
            page.matching(),
            page.section.order,
            page.section.key
        );
        let rows: Vec<LineRow> = self
            .db
            .patient()
            .run("archive_lines", async |conn| {
                Ok(diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale).load(conn).await?)
            })
            .await?;
        let sum = ArchiveSum { rows: rows.len() as u64, units: rows.iter().map(|row| row.units).sum() };
        Ok((rows.into_iter().map(|row| row.line).collect(), sum))
    }

    /// The sum of a page.
    pub(crate) async fn sum(&self, sale_id: &SaleId, page: ArchivePage<'_>) -> Result<ArchiveSum, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let (units, from, matching) = (page.table.units_of_row(), page.table.from, page.matching());
        let query = format!(
            "/* archive::sum */ SELECT COUNT(*) AS counted, CAST(COALESCE(SUM({units}), 0) AS SIGNED) AS units FROM {from} WHERE {matching}"
        );
        let row: SumRow = self
            .db
            .patient()
            .run("archive_sum", async |conn| {
                Ok(diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale).get_result(conn).await?)
            })
            .await?;
        Ok(row.read())
    }

    /// All rows of a sale in a table, counted without the walk: what the walk does not meet shows in the difference.
    pub(crate) async fn count(&self, sale_id: &SaleId, table: &ArchiveTable) -> Result<u64, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let query = format!(
            "/* archive::count */ SELECT COUNT(*) AS counted, 0 AS units FROM {} WHERE sale_id = ?",
            table.name
        );
        let row: SumRow = self
            .db
            .patient()
            .run("archive_count", async |conn| {
                Ok(diesel::sql_query(query).bind::<Binary, _>(sale).get_result(conn).await?)
            })
            .await?;
        Ok(row.read().rows)
    }

    /// Removes the rows of a page, of a sale that has its row in `archived_sales`; how many went.
    ///
    /// # Errors
    /// [`DbError`], [`DbError::Other`] when the sale is not being removed or the table's rows stay; repeating the call is safe.
    pub(crate) async fn remove(&self, sale_id: &SaleId, page: ArchivePage<'_>) -> Result<usize, DbError> {
        if page.table.stays {
            return Err(DbError::Other(format!("rows of {} are never removed", page.table.name)));
        }
        let sale = sale_id.as_str().as_bytes();
        let query = format!("/* archive::remove */ DELETE t FROM {} WHERE {}", page.table.from, page.matching());
        self.db
            .patient()
            .run("archive_remove", async |conn| {
                transaction(conn, async |conn| {
                    if !archived::is_there(conn, sale).await? {
                        return Err(DbError::Other(
                            "the sale is not being removed, so nothing of it is deleted".to_owned(),
                        ));
                    }
                    Ok(diesel::sql_query(query).bind::<Binary, _>(sale).bind::<Binary, _>(sale).execute(conn).await?)
                })
                .await
            })
            .await
    }

    /// Removes up to a page of what buyers have in a drop (`drop_purchases`); how many rows went. They stay while a sale of the drop is
    /// neither removed nor being removed.
    pub(crate) async fn remove_of_drop(&self, drop: &SalesDrop) -> Result<usize, DbError> {
        let sales: Vec<&[u8]> = drop.sale_ids.iter().map(|id| id.as_str().as_bytes()).collect();
        let query = format!("/* archive::remove_of_drop */ DELETE FROM drop_purchases WHERE drop_id = ? LIMIT {PAGE}");
        let drop_id = drop.drop_id.as_str().as_bytes();
        self.db
            .patient()
            .run("archive_remove_of_drop", async |conn| {
                let going = archived_sales::table.filter(archived_sales::sale_id.eq_any(&sales)).count();
                let going: i64 = going.get_result(conn).await?;
                if going < i64::try_from(sales.len()).unwrap_or(i64::MAX) {
                    return Ok(0);
                }
                Ok(diesel::sql_query(query).bind::<Binary, _>(drop_id).execute(conn).await?)
            })
            .await
    }

    /// Whether this account may delete the rows of a sale.
    ///
    /// # Errors
    /// [`DbError::Other`] with the first table where it may not, [`DbError`].
    pub(crate) async fn may_remove(&self) -> Result<(), DbError> {
        self.db
            .run("archive_may_remove", async |conn| {
                let of_sales = TABLES.iter().filter(|table| !table.stays).map(|table| table.name);
                for table in of_sales.chain(iter::once("drop_purchases")) {
                    let asked = conn.batch_execute(&format!("EXPLAIN DELETE FROM {table} WHERE 1 = 0")).await;
                    asked.map_err(|error| {
                        DbError::Other(format!(
                            "this account may not remove rows of {table} ({error}); use one that may, see docs/operations.md"
                        ))
                    })?;
                }
                Ok(())
            })
            .await
    }
}
