//! Units released for sale: database first, then Redis, idempotent by grant id.
//!
//! A crash after the grant was written leaves it unapplied; [`unapplied`] finds it, Redis takes it at most once, and
//! [`mark_applied`] closes it.

use super::codes::{GrantKind, read_sale_id, unix_ms, unreadable};
use super::fault::DbError;
use super::pool::{Conn, Db};
use super::sales::SaleError;
use super::schema::{sales, stock_flow, stock_grants};
use crate::domain::ids::SaleId;
use crate::domain::sale::STOCK_MAX;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Binary};
use diesel_async::{AsyncConnection, RunQueryDsl};

/// The grant a sale is created with; the first warm-up applies it.
pub const FIRST_GRANT: &str = "first";
/// Most grants a listing returns.
pub const GRANTS_MAX: i64 = 1000;

/// A grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The sale.
    pub sale_id: SaleId,
    /// Its identity within the sale.
    pub grant_id: String,
    /// New units, or units sold again.
    pub kind: GrantKind,
    /// Units.
    pub quantity: i64,
    /// When Redis was known to have it, Unix milliseconds by the database's clock.
    pub applied_at_ms: Option<i64>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = stock_grants)]
struct GrantRow {
    sale_id: Vec<u8>,
    grant_id: Vec<u8>,
    kind: String,
    quantity: i64,
    applied_at: Option<NaiveDateTime>,
}

impl GrantRow {
    fn read(self) -> Result<Grant, DbError> {
        Ok(Grant {
            sale_id: read_sale_id(&self.sale_id)?,
            grant_id: String::from_utf8(self.grant_id).map_err(|bad| unreadable("grant_id", &bad.to_string()))?,
            kind: GrantKind::from_code(&self.kind).ok_or_else(|| unreadable("stock_grants.kind", &self.kind))?,
            quantity: self.quantity,
            applied_at_ms: self.applied_at.map(unix_ms),
        })
    }
}

/// Writes grant and journal row; the caller's transaction moves `sales`.
pub(super) async fn insert(conn: &mut Conn, sale_id: &SaleId, grant_id: &str, quantity: i64) -> Result<(), DbError> {
    let sale = sale_id.as_str().as_bytes();
    diesel::insert_into(stock_grants::table)
        .values((
            stock_grants::sale_id.eq(sale),
            stock_grants::grant_id.eq(grant_id.as_bytes()),
            stock_grants::kind.eq(GrantKind::Grant.code()),
            stock_grants::quantity.eq(quantity),
        ))
        .execute(conn)
        .await?;
    diesel::insert_into(stock_flow::table)
        .values((
            stock_flow::sale_id.eq(sale),
            stock_flow::delta.eq(quantity),
            stock_flow::kind.eq("grant"),
            stock_flow::orders_count.eq(0),
            stock_flow::reference.eq(grant_id.as_bytes()),
        ))
        .execute(conn)
        .await?;
    Ok(())
}

/// Releases more units under `grant_id` (1 to 64 bytes). `false`: this very grant was made before, nothing changed.
///
/// # Errors
/// [`SaleError`]; repeating the call is safe.
pub async fn top_up(db: &Db, sale_id: &SaleId, grant_id: &str, quantity: u32) -> Result<bool, SaleError> {
    let sale = sale_id.as_str().as_bytes();
    let quantity = i64::from(quantity);
    let moved = db
        .run("grant_top_up", async |conn| {
            conn.transaction(async |conn| {
                insert(conn, sale_id, grant_id, quantity).await?;
                let room = sales::table.find(sale).filter(sales::granted.le(STOCK_MAX - quantity));
                let more = (sales::granted.eq(sales::granted + quantity), sales::stock.eq(sales::stock + quantity));
                let matched = diesel::update(room).set(more).execute(conn).await?;
                if matched == 1 { Ok(true) } else { Err(Halted::NoRoom) }
            })
            .await
            .or_else(|halted| match halted {
                Halted::NoRoom => Ok(false),
                Halted::Db(error) => Err(error),
            })
        })
        .await;
    match moved {
        Ok(true) => Ok(true),
        Ok(false) if super::sales::get(db, sale_id).await?.is_none() => Err(SaleError::Unknown(sale_id.clone())),
        Ok(false) => Err(SaleError::TooMuch(sale_id.clone())),
        Err(DbError::Duplicate(_)) => {
            let same = list(db, sale_id).await?.into_iter().any(|grant| {
                grant.grant_id == grant_id && grant.quantity == quantity && grant.kind == GrantKind::Grant
            });
            if same { Ok(false) } else { Err(SaleError::GrantConflict(grant_id.to_owned())) }
        }
        Err(error) => Err(error.into()),
    }
}

/// Why the transaction of [`top_up`] rolled back.
enum Halted {
    NoRoom,
    Db(DbError),
}

impl From<DbError> for Halted {
    fn from(error: DbError) -> Self {
        Self::Db(error)
    }
}

impl From<diesel::result::Error> for Halted {
    fn from(error: diesel::result::Error) -> Self {
        Self::Db(error.into())
    }
}

/// The grants of a sale, oldest first.
///
/// # Errors
/// [`DbError`].
pub async fn list(db: &Db, sale_id: &SaleId) -> Result<Vec<Grant>, DbError> {
    let rows: Vec<GrantRow> = db
        .run("grant_list", async |conn| {
            let grants = stock_grants::table.filter(stock_grants::sale_id.eq(sale_id.as_str().as_bytes()));
            let oldest = grants.order((stock_grants::created_at, stock_grants::grant_id)).limit(GRANTS_MAX);
            Ok(oldest.select(GrantRow::as_select()).load(conn).await?)
        })
        .await?;
    rows.into_iter().map(GrantRow::read).collect()
}

/// Grants of a sale that Redis is not known to have, oldest first.
///
/// # Errors
/// [`DbError`].
pub async fn unapplied(db: &Db, sale_id: &SaleId) -> Result<Vec<Grant>, DbError> {
    let rows: Vec<GrantRow> = db
        .run("grant_unapplied", async |conn| {
            let grants = stock_grants::table
                .filter(stock_grants::sale_id.eq(sale_id.as_str().as_bytes()))
                .filter(stock_grants::applied_at.is_null())
                .order((stock_grants::created_at, stock_grants::grant_id))
                .limit(GRANTS_MAX);
            Ok(grants.select(GrantRow::as_select()).load(conn).await?)
        })
        .await?;
    rows.into_iter().map(GrantRow::read).collect()
}

/// Notes that Redis has a grant. `false`: it was noted before, or there is no such grant.
///
/// # Errors
/// [`DbError`].
pub async fn mark_applied(db: &Db, sale_id: &SaleId, grant_id: &str) -> Result<bool, DbError> {
    let grant = stock_grants::table
        .find((sale_id.as_str().as_bytes(), grant_id.as_bytes()))
        .filter(stock_grants::applied_at.is_null());
    let matched = db
        .run("grant_mark_applied", async |conn| {
            let now = stock_grants::applied_at.eq(diesel::dsl::sql("NOW(3)"));
            Ok(diesel::update(grant).set(now).execute(conn).await?)
        })
        .await?;
    Ok(matched > 0)
}

/// Makes reclaim grants for final failures of the sale's present epoch that have none yet, at most `limit`; a grant's id is
/// `reclaim-<request id>`. Returns how many it made. `sales` does not move: those units never left `sales.stock`. Older
/// epochs are left out because the rebuild that ended them gave Redis everything the database had.
///
/// # Errors
/// [`DbError`]; repeating the call is safe.
pub async fn reclaim(db: &Db, sale_id: &SaleId, limit: u32) -> Result<usize, DbError> {
    let sale = sale_id.as_str().as_bytes();
    let made = db
        .run("grant_reclaim", async |conn| {
            Ok(diesel::sql_query(
                "/* grants::reclaim */ INSERT INTO stock_grants (sale_id, grant_id, kind, quantity) \
                 SELECT f.sale_id, CONCAT('reclaim-', f.request_id), 'reclaim', f.quantity FROM failed_request f \
                 JOIN request_outcome o ON o.request_id = f.request_id AND o.kind = 'FAILED' \
                 JOIN sales s ON s.sale_id = f.sale_id AND s.epoch = o.epoch \
                 LEFT JOIN stock_grants g ON g.sale_id = f.sale_id AND g.grant_id = CONCAT('reclaim-', f.request_id) \
                 WHERE f.sale_id = ? AND f.status = 'failed_final' AND g.grant_id IS NULL LIMIT ?",
            )
            .bind::<Binary, _>(sale)
            .bind::<BigInt, _>(i64::from(limit))
            .execute(conn)
            .await?)
        })
        .await;
    match made {
        // Someone reclaims the same at the same moment; theirs counts.
        Err(DbError::Duplicate(_)) => Ok(0),
        other => other,
    }
}
