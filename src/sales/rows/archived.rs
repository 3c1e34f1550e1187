//! What is kept of a sale that was removed (`archived_sales`): one row, written before the first row of the sale goes and never
//! changed. A crash leaves that row and the rest of the sale, which counts as archived from then on.

use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::store::mysql::codes::cut;
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{archived_sales, sales};
use crate::store::mysql::transaction::transaction;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use serde::{Deserialize, Serialize};

mysql_handle! {
    /// What is kept of sales that were removed.
    ArchivedRows
}

/// Archived sales in one list.
const ARCHIVED_MAX: i64 = 1_000;

/// The sums of an archived sale, in the manifest of its export and in `archived_sales`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Queryable, Selectable)]
#[diesel(table_name = archived_sales)]
pub struct SaleSums {
    /// The archived sale.
    pub sale_id: SaleId,
    /// The title that buyers read.
    pub title: String,
    /// Units ever released.
    pub granted: i64,
    /// Units that were not sold.
    pub stock: i64,
    /// Units of all orders, cancelled ones too.
    pub ordered: i64,
    /// Number of orders.
    pub orders_count: u64,
    /// Requests with an outcome.
    pub(crate) outcomes_count: u64,
}

/// A sale that was exported and removed, or is being removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Queryable, Selectable)]
#[diesel(table_name = archived_sales)]
pub struct Archived {
    /// The sums of the export.
    #[serde(flatten)]
    #[diesel(embed)]
    pub sums: SaleSums,
    /// SHA-256 of the export's manifest, hexadecimal.
    pub manifest: String,
    /// Who removed it.
    pub archived_by: String,
    /// When the removal began, Unix milliseconds by the database's clock; not read by [`begin`].
    #[diesel(column_name = archived_at, deserialize_as = UnixMs)]
    pub(crate) archived_at_ms: i64,
}

impl ArchivedRows {
    /// What is kept of a sale; `None`: it was not archived.
    pub async fn get(&self, sale_id: &SaleId) -> Result<Option<Archived>, DbError> {
        let sale = archived_sales::table.find(sale_id.as_str().as_bytes()).select(Archived::as_select());
        self.db.run("archived_get", async |conn| Ok(sale.first(conn).await.optional()?)).await
    }

    /// The last [`ARCHIVED_MAX`] of them, newest first.
    pub async fn list(&self) -> Result<Vec<Archived>, DbError> {
        let newest = archived_sales::table.order((archived_sales::archived_at.desc(), archived_sales::sale_id));
        let newest = newest.limit(ARCHIVED_MAX).select(Archived::as_select());
        self.db.run("archived_list", async |conn| Ok(newest.load(conn).await?)).await
    }
}

/// Whether a sale was archived, or is being removed.
pub(crate) async fn is_there(conn: &mut Conn, sale: &[u8]) -> Result<bool, DbError> {
    let found: Option<Vec<u8>> =
        archived_sales::table.find(sale).select(archived_sales::sale_id).first(conn).await.optional()?;
    Ok(found.is_some())
}

impl ArchivedRows {
    /// Writes the row, if the row of `sales` still agrees with `sale`: every change of a sale changes that row, but for a payment, whose own
    /// row stays. `false`: it does not agree, and nothing was written. After an unknown outcome, [`get`] shows what holds.
    pub async fn begin(&self, sale: &Sale, archived: &Archived) -> Result<bool, DbError> {
        let id = sale.sale_id.as_str().as_bytes();
        let sums = &archived.sums;
        let row = (
            archived_sales::sale_id.eq(id),
            archived_sales::title.eq(&sums.title),
            archived_sales::granted.eq(sums.granted),
            archived_sales::stock.eq(sums.stock),
            archived_sales::ordered.eq(sums.ordered),
            archived_sales::orders_count.eq(sums.orders_count),
            archived_sales::outcomes_count.eq(sums.outcomes_count),
            archived_sales::manifest.eq(&archived.manifest),
            archived_sales::archived_by.eq(cut(&archived.archived_by, 64)),
        );
        let as_exported = (SaleStatus::Closed.code().to_owned(), sums.granted, sums.stock, sale.epoch);
        self.db
            .run("archived_begin", async |conn| {
                transaction(conn, async |conn| {
                    let now = (sales::status, sales::granted, sales::stock, sales::epoch);
                    let now: Option<(String, i64, i64, u32)> =
                        sales::table.find(id).select(now).for_update().first(conn).await.optional()?;
                    if now != Some(as_exported) {
                        return Ok(false);
                    }
                    diesel::insert_into(archived_sales::table).values(row).execute(conn).await?;
                    Ok(true)
                })
                .await
            })
            .await
    }
}
