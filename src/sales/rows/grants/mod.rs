//! Units released for sale: database first, then Redis, idempotent by grant id.
//!
//! A crash after the grant was written leaves it unapplied; [`unapplied`] finds it, Redis takes it at most once, and
//! [`mark_applied`] closes it.

mod reclaim;
mod top_up;
mod withdrawals;

pub use reclaim::Reclaimed;
pub use withdrawals::Withdrawal;
pub(crate) use withdrawals::{OPEN_MAX, WithdrawalEnd};

use crate::domain::ids::SaleId;
use crate::domain::order_life::ReturnedPurchase;
use crate::domain::sale::SaleStatus;
use crate::store::mysql::codes::GrantKind;
use crate::store::mysql::columns::{ByteText, MaybeUnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::mysql_handle;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::{sales, stock_flow, stock_grants};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

mysql_handle! {
    /// Units that were given to sales, and whether Redis has them.
    GrantRows
}

/// Most grants a listing returns.
const GRANTS_MAX: i64 = 1000;
/// Most open grants read at a time: each may name the buyers of a batch.
const UNAPPLIED_MAX: i64 = 100;
/// Most grants of one epoch that are compared one by one.
pub(crate) const OF_EPOCH_MAX: i64 = 10_000;
/// Whether a grant has units of an order that ended, which came back into `sales.stock`; in SQL. Other grants of its kind offer units
/// that never left it.
pub(crate) const IS_RETURN: &str = "(kind = 'reclaim' AND (grant_id LIKE 'cancel-%' OR grant_id LIKE 'return-%'))";

/// A row of `stock_grants`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = stock_grants)]
pub struct Grant {
    /// The sale that gets the units.
    pub sale_id: SaleId,
    /// Its identity within the sale.
    #[diesel(deserialize_as = ByteText)]
    pub grant_id: String,
    /// New units, or units sold again.
    pub kind: GrantKind,
    /// Number of units; below 0 those of a withdrawal.
    pub quantity: i64,
    /// When Redis was known to have it, Unix milliseconds by the database's clock.
    #[diesel(column_name = applied_at, deserialize_as = MaybeUnixMs)]
    pub(crate) applied_at_ms: Option<i64>,
    /// Purchases that no longer count against their buyers' limits, as JSON; read with [`Grant::returned`].
    buyers: Option<String>,
}

impl Grant {
    /// The purchases that Redis forgets when it takes the units: buyer, request, units.
    pub(crate) fn returned(&self) -> Result<Vec<ReturnedPurchase>, DbError> {
        self.buyers.as_deref().map_or_else(|| Ok(Vec::new()), returned_purchases)
    }
}

/// Reads `stock_grants.buyers`.
pub(crate) fn returned_purchases(buyers: &str) -> Result<Vec<ReturnedPurchase>, DbError> {
    serde_json::from_str(buyers).map_err(|error| DbError::Other(format!("stock_grants.buyers: {error}")))
}

/// Writes grant and journal row; the caller's transaction moves `sales`.
pub(crate) async fn insert(
    conn: &mut Conn,
    sale_id: &SaleId,
    grant_id: &str,
    (quantity, epoch): (i64, u32),
) -> Result<(), DbError> {
    write(conn, sale_id, grant_id, (GrantKind::Grant, quantity, epoch)).await?;
    diesel::insert_into(stock_flow::table)
        .values((
            stock_flow::sale_id.eq(sale_id.as_str().as_bytes()),
            stock_flow::delta.eq(quantity),
            stock_flow::kind.eq("grant"),
            stock_flow::orders_count.eq(0),
            stock_flow::reference.eq(grant_id.as_bytes()),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// The grant alone, which Redis is to be given in `epoch`.
pub(crate) async fn write(
    conn: &mut Conn,
    sale_id: &SaleId,
    grant_id: &str,
    units: (GrantKind, i64, u32),
) -> Result<(), DbError> {
    write_with_buyers(conn, sale_id, grant_id, units, &[]).await
}

/// The same, of units whose buyers get their limits back.
pub(crate) async fn write_with_buyers(
    conn: &mut Conn,
    sale_id: &SaleId,
    grant_id: &str,
    (kind, quantity, epoch): (GrantKind, i64, u32),
    returned: &[ReturnedPurchase],
) -> Result<(), DbError> {
    let buyers = match returned {
        [] => None,
        some => Some(serde_json::to_string(some).map_err(|error| DbError::Other(error.to_string()))?),
    };
    diesel::insert_into(stock_grants::table)
        .values((
            stock_grants::sale_id.eq(sale_id.as_str().as_bytes()),
            stock_grants::grant_id.eq(grant_id.as_bytes()),
            stock_grants::kind.eq(kind.code()),
            stock_grants::quantity.eq(quantity),
            stock_grants::epoch.eq(epoch),
            stock_grants::buyers.eq(buyers),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

impl GrantRows {
    pub(crate) async fn get(&self, sale_id: &SaleId, grant_id: &str) -> Result<Option<Grant>, DbError> {
        self.db
            .run("grant_get", async |conn| {
                let grant = stock_grants::table.find((sale_id.as_str().as_bytes(), grant_id.as_bytes()));
                Ok(grant.select(Grant::as_select()).first(conn).await.optional()?)
            })
            .await
    }

    /// The newest [`GRANTS_MAX`] grants of a sale, newest first.
    pub(crate) async fn list(&self, sale_id: &SaleId) -> Result<Vec<GrantMark>, DbError> {
        self.db
            .run("grant_list", async |conn| {
                let grants = stock_grants::table.filter(stock_grants::sale_id.eq(sale_id.as_str().as_bytes()));
                let newest = grants.order((stock_grants::created_at.desc(), stock_grants::grant_id)).limit(GRANTS_MAX);
                Ok(newest.select(GrantMark::as_select()).load(conn).await?)
            })
            .await
    }

    /// Grants of a sale's epoch that Redis is not known to have, oldest first; at most a hundred, more when those are applied.
    /// One of another epoch is among the units of a rebuild, whatever its mark says.
    pub async fn unapplied(&self, sale_id: &SaleId, epoch: u32) -> Result<Vec<Grant>, DbError> {
        self.db
            .run("grant_unapplied", async |conn| {
                let grants = stock_grants::table
                    .filter(stock_grants::sale_id.eq(sale_id.as_str().as_bytes()))
                    .filter(stock_grants::epoch.eq(epoch))
                    .filter(stock_grants::applied_at.is_null())
                    .order((stock_grants::created_at, stock_grants::grant_id))
                    .limit(UNAPPLIED_MAX);
                Ok(grants.select(Grant::as_select()).load(conn).await?)
            })
            .await
    }

    /// A grant of a sale's epoch that Redis is not known to have; `None` when there is no such one.
    pub(crate) async fn unapplied_one(
        &self,
        sale_id: &SaleId,
        epoch: u32,
        grant_id: &str,
    ) -> Result<Option<Grant>, DbError> {
        self.db
            .run("grant_unapplied_one", async |conn| {
                let grant = stock_grants::table
                    .find((sale_id.as_str().as_bytes(), grant_id.as_bytes()))
                    .filter(stock_grants::epoch.eq(epoch))
                    .filter(stock_grants::applied_at.is_null());
                Ok(grant.select(Grant::as_select()).first(conn).await.optional()?)
            })
            .await
    }

    /// Selling sales with a grant that Redis is not known to have, at most [`GRANTS_MAX`].
    pub(crate) async fn sales_with_unapplied(&self) -> Result<Vec<SaleId>, DbError> {
        self.db
            .run("grant_sales_unapplied", async |conn| {
                let selling = sales::table
                    .filter(sales::status.eq_any([SaleStatus::Warmed.code(), SaleStatus::Paused.code()]))
                    .select(sales::sale_id);
                let open = stock_grants::table.filter(stock_grants::sale_id.eq_any(selling));
                let open = open.filter(stock_grants::applied_at.is_null());
                Ok(open.select(stock_grants::sale_id).distinct().limit(GRANTS_MAX).load(conn).await?)
            })
            .await
    }
}

/// A grant as listings and the audit need it: without its buyers, who may be hundreds.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = stock_grants)]
pub(crate) struct GrantMark {
    #[diesel(deserialize_as = ByteText)]
    pub(crate) grant_id: String,
    pub(crate) quantity: i64,
    /// When Redis was known to have it, Unix milliseconds by the database's clock.
    #[diesel(column_name = applied_at, deserialize_as = MaybeUnixMs)]
    pub(crate) applied_at_ms: Option<i64>,
}

impl GrantRows {
    /// The grants of a sale's epoch, and which of them Redis is known to have; at most [`OF_EPOCH_MAX`].
    pub(crate) async fn of_epoch(&self, sale_id: &SaleId, epoch: u32) -> Result<Vec<GrantMark>, DbError> {
        self.db
            .run("grant_of_epoch", async |conn| {
                let grants = stock_grants::table
                    .filter(stock_grants::sale_id.eq(sale_id.as_str().as_bytes()))
                    .filter(stock_grants::epoch.eq(epoch));
                Ok(grants.limit(OF_EPOCH_MAX).select(GrantMark::as_select()).load(conn).await?)
            })
            .await
    }

    /// Notes that Redis has a grant. `false`: it was noted before, or there is no such grant.
    pub async fn mark_applied(&self, sale_id: &SaleId, grant_id: &str) -> Result<bool, DbError> {
        let sale = sale_id.as_str().as_bytes();
        let matched = self.db.run("grant_mark_applied", async |conn| mark(conn, sale, grant_id).await).await?;
        Ok(matched > 0)
    }
}

/// As [`mark_applied`], in the caller's transaction.
pub(crate) async fn mark(conn: &mut Conn, sale: &[u8], grant_id: &str) -> Result<usize, DbError> {
    let grant = stock_grants::table.find((sale, grant_id.as_bytes())).filter(stock_grants::applied_at.is_null());
    let now = stock_grants::applied_at.eq(diesel::dsl::sql("NOW(3)"));
    Ok(diesel::update(grant).set(now).execute(conn).await?)
}
