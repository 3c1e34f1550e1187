//! Sales that ended and were never closed: their keys stay in Redis, and every audit walks them, for ever.

use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::p5_reconcile::rows::BookRows;
use crate::store::mysql::codes::{datetime, read_sale_id};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::sales;
use diesel::dsl::{exists, not};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// A sale may be open for this long after its end before it is reported, milliseconds: long enough to persist the last
/// accepted requests, and for a person to close it.
pub const GRACE_MS: i64 = 60 * 60 * 1000;
/// Names listed; the count is of all.
const NAMED_MAX: i64 = 10;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedOpen {
    /// How many there are.
    pub count: i64,
    /// The first of them, those that ended earliest; at most 10.
    pub named: Vec<SaleId>,
}

impl BookRows {
    /// Warmed and paused sales whose end is more than [`GRACE_MS`] and the time after which they close by themselves (seconds; 0:
    /// never) before `now_ms` (Unix milliseconds). A draft has nothing in Redis, and a sale of a drop stays as long as another one of it
    /// goes on.
    pub async fn ended_open(&self, now_ms: i64, auto_close_after_s: u64) -> Result<EndedOpen, DbError> {
        let auto_ms = i64::try_from(auto_close_after_s.saturating_mul(1000)).unwrap_or(i64::MAX);
        let before = datetime(now_ms.saturating_sub(GRACE_MS).saturating_sub(auto_ms))?;
        let other = diesel::alias!(sales as other);
        let open = || {
            let statuses = [SaleStatus::Warmed.code(), SaleStatus::Paused.code()];
            // Named one by one: a range of the index by status.
            let open = [SaleStatus::Draft.code(), SaleStatus::Warmed.code(), SaleStatus::Paused.code()];
            let goes_on = other
                .filter(other.field(sales::drop_id).eq(sales::drop_id))
                .filter(other.field(sales::status).eq_any(open))
                .filter(other.field(sales::ends_at).ge(before));
            let ended = sales::table.filter(sales::status.eq_any(statuses)).filter(sales::ends_at.lt(before));
            ended.filter(not(exists(goes_on)))
        };
        let (count, named): (i64, Vec<Vec<u8>>) = self
            .db
            .run("sale_ended_open", async |conn| {
                let named = open().order((sales::ends_at, sales::sale_id)).limit(NAMED_MAX).select(sales::sale_id);
                Ok((open().count().get_result(conn).await?, named.load(conn).await?))
            })
            .await?;
        Ok(EndedOpen { count, named: named.iter().map(|id| read_sale_id(id)).collect::<Result<_, _>>()? })
    }
}
