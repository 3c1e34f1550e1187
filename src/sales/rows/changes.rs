//! Changes of a sale that exists, each one conditional UPDATE: by the version that was read and the database's clock.
//!
//! Input: the sale as it was read, and as it should be. Output: whether it is so now. A crash leaves all of it or nothing.

use crate::domain::ids::SaleId;
use crate::domain::sale::{Sale, SaleStatus};
use crate::sales::rows::{SaleRow, SaleRows, acts};
use crate::sales::sale_change::{START_SETTLED_S, SaleChange};
use crate::store::mysql::codes::unix_ms;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::pool::Conn;
use crate::store::mysql::schema::sales;
use crate::store::mysql::transaction::transaction;
use chrono::NaiveDateTime;
use diesel::dsl::sql;
use diesel::mysql::Mysql;
use diesel::prelude::*;
use diesel::sql_types::{Bool, Datetime};
use diesel_async::RunQueryDsl;

/// A sale, and the moment at which it was so.
pub(crate) struct SeenSale {
    pub(crate) sale: Sale,
    /// Unix milliseconds by the database's clock.
    pub(crate) now_ms: i64,
}

impl SaleRows {
    /// A sale with the database's time, if it exists.
    pub(crate) async fn seen(&self, sale_id: &SaleId) -> Result<Option<SeenSale>, DbError> {
        self.db
            .run("sale_seen", async |conn| {
                let sale = sales::table.find(sale_id.as_str().as_bytes());
                let sale = sale.select((SaleRow::as_select(), sql::<Datetime>("NOW(3)")));
                let found: Option<(SaleRow, NaiveDateTime)> = sale.first(conn).await.optional()?;
                let Some((row, now)) = found else { return Ok(None) };
                let sale = SaleRow::read_all(conn, vec![row]).await?.pop();
                Ok(sale.map(|sale| SeenSale { sale, now_ms: unix_ms(now) }))
            })
            .await
    }
}

/// A condition on `sales`.
type Condition = Box<dyn BoxableExpression<sales::table, Mysql, SqlType = Bool>>;

/// What has to hold of the stored sale at the moment of the UPDATE: the rules of [`SaleChange::applied`] that a clock or another
/// command can break between its reading and this. All times by the database's clock.
fn condition(change: &SaleChange, moves_start: bool) -> Condition {
    let settled = format!("NOW(3) + INTERVAL {START_SETTLED_S} SECOND");
    let open = sales::status.ne(SaleStatus::Closed.code());
    let unsettled = sales::starts_at.gt(sql::<Datetime>(&settled));
    match change {
        SaleChange::Edit(_) => Box::new(open.and(unsettled)),
        SaleChange::Reschedule(_) if moves_start => Box::new(open.and(unsettled)),
        SaleChange::Reschedule(_) => Box::new(open.and(sales::ends_at.gt(sql::<Datetime>("NOW(3)")))),
        SaleChange::Hide => {
            let stopped = sales::status.eq_any([SaleStatus::Paused.code(), SaleStatus::Closed.code()]);
            Box::new(stopped.or(unsettled).or(sales::ends_at.le(sql::<Datetime>("NOW(3)"))))
        }
        SaleChange::Publish => Box::new(sales::hidden.eq(true)),
    }
}

impl SaleRows {
    /// Writes `to` over `from` if it still has the version of `from` and `change` may still be made; whether it was written.
    /// After an unknown outcome a repeat finds out.
    pub(crate) async fn write(&self, change: &SaleChange, from: &Sale, to: &Sale) -> Result<bool, DbError> {
        let row = SaleRow::of(to)?;
        let id = from.sale_id.as_str().as_bytes();
        let written = self
            .db
            .run("sale_change", async |conn: &mut Conn| {
                let allowed = condition(change, from.starts_at_ms != to.starts_at_ms);
                let as_read = sales::table.find(id).filter(sales::version.eq(from.version)).filter(allowed);
                let terms = (
                    sales::product_id.eq(&row.product_id),
                    sales::title.eq(&row.title),
                    sales::price_cents.eq(row.price_cents),
                    sales::currency.eq(&row.currency),
                    sales::per_user_limit.eq(row.per_user_limit),
                    sales::token_required.eq(row.token_required),
                    sales::waiting_room.eq(row.waiting_room),
                    sales::pay_within_s.eq(row.pay_within_s),
                    sales::pay_grace_s.eq(row.pay_grace_s),
                    sales::limit_returns.eq(row.limit_returns),
                    sales::challenge.eq(&row.challenge),
                );
                let rest = (
                    sales::starts_at.eq(row.starts_at),
                    sales::ends_at.eq(row.ends_at),
                    sales::hidden.eq(row.hidden),
                    sales::version.eq(sales::version + 1),
                );
                transaction(conn, async |conn| {
                    let written = diesel::update(as_read).set((terms, rest)).execute(conn).await?;
                    if written == 1 {
                        acts::insert_pending(conn, &from.sale_id).await?;
                    }
                    Ok::<_, DbError>(written)
                })
                .await
            })
            .await?;
        if written == 1 {
            acts::pending_is_written();
        }
        Ok(written == 1)
    }

    /// Whether a sale ended `after_s` seconds ago by the database's clock.
    pub(crate) async fn ended_since(&self, sale_id: &SaleId, after_s: u64) -> Result<bool, DbError> {
        let after_ms = i64::try_from(after_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let seen = self.seen(sale_id).await?;
        Ok(seen.is_some_and(|SeenSale { sale, now_ms }| sale.ends_at_ms.saturating_add(after_ms) <= now_ms))
    }

    /// Closes a sale that ended `after_s` seconds ago; `false` when it is not so, or not any more.
    /// Repeating is safe.
    pub(crate) async fn close_ended(&self, sale_id: &SaleId, after_s: u64) -> Result<bool, DbError> {
        let id = sale_id.as_str().as_bytes();
        let closed = self
            .db
            .run("sale_close_ended", async |conn: &mut Conn| {
                let over = sales::table
                    .find(id)
                    .filter(sales::status.eq_any([SaleStatus::Warmed.code(), SaleStatus::Paused.code()]))
                    .filter(sales::ends_at.le(sql::<Datetime>(&format!("NOW(3) - INTERVAL {after_s} SECOND"))));
                transaction(conn, async |conn| {
                    let closed =
                        diesel::update(over).set(sales::status.eq(SaleStatus::Closed.code())).execute(conn).await?;
                    if closed == 1 {
                        acts::insert_pending(conn, sale_id).await?;
                    }
                    Ok::<_, DbError>(closed)
                })
                .await
            })
            .await?;
        if closed == 1 {
            acts::pending_is_written();
        }
        Ok(closed == 1)
    }
}

/// A step of a sale's epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochStep {
    /// The epoch that the sale must have now.
    pub from: u32,
    /// The epoch that it gets, above `from`.
    pub to: u32,
}

impl SaleRows {
    /// Moves the epoch forward. `true` for the only caller that did: an epoch belongs to one attempt of a rebuild.
    /// After an unknown outcome the next epoch is free.
    pub async fn advance_epoch(&self, sale_id: &SaleId, step: EpochStep) -> Result<bool, DbError> {
        let sale = sales::table.find(sale_id.as_str().as_bytes());
        let older = sale.filter(sales::epoch.eq(step.from)).filter(sales::epoch.lt(step.to));
        let moved = self
            .db
            .run("sale_advance_epoch", async |conn| {
                Ok(diesel::update(older).set(sales::epoch.eq(step.to)).execute(conn).await?)
            })
            .await?;
        Ok(moved == 1)
    }
}
