//! Reading what was decided: the outcome of requests, and everything the database knows about one request.

use super::codes::{read_outcome, read_request_id, read_sale_id, read_user_id, unix_ms, unreadable};
use super::fault::DbError;
use super::pool::Db;
use super::register::{FailedRequest, FailedRow};
use super::schema::{failed_request, orders, request_outcome};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::outcome::Outcome;
use crate::domain::request::PayloadHash;
use chrono::NaiveDateTime;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Longest IN list.
const IDS_MAX: usize = 1000;

/// The recorded outcome of a request, and what it was accepted as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The request.
    pub request_id: RequestId,
    /// Its outcome.
    pub outcome: Outcome,
    /// The sale.
    pub sale_id: SaleId,
    /// Home shard at acceptance.
    pub shard: u16,
    /// Epoch at acceptance.
    pub epoch: u32,
    /// Acceptance number; `None` when another request has it.
    pub number: Option<u64>,
    /// Fingerprint of what was accepted.
    pub payload_hash: PayloadHash,
    /// When it was decided, Unix milliseconds by the database's clock.
    pub decided_at_ms: i64,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = request_outcome)]
struct OutcomeRow {
    request_id: u64,
    kind: String,
    reason: Option<String>,
    sale_id: Vec<u8>,
    shard: u16,
    epoch: u32,
    number: Option<u64>,
    payload_hash: Vec<u8>,
    created_at: NaiveDateTime,
}

impl OutcomeRow {
    fn read(self) -> Result<Decided, DbError> {
        Ok(Decided {
            request_id: read_request_id(self.request_id)?,
            outcome: read_outcome(&self.kind, self.reason.as_deref())?,
            sale_id: read_sale_id(&self.sale_id)?,
            shard: self.shard,
            epoch: self.epoch,
            number: self.number,
            payload_hash: PayloadHash::try_from(self.payload_hash.as_slice())
                .map_err(|_ignored| unreadable("payload_hash", &format!("{:?}", self.payload_hash)))?,
            decided_at_ms: unix_ms(self.created_at),
        })
    }
}

/// What was decided about those of `ids` that are decided. Any number of ids; asked in lists of at most 1,000.
///
/// # Errors
/// [`DbError`].
pub async fn outcomes_of(db: &Db, ids: &[RequestId]) -> Result<HashMap<RequestId, Decided>, DbError> {
    let mut decided = HashMap::with_capacity(ids.len());
    for page in ids.chunks(IDS_MAX) {
        let rows: Vec<OutcomeRow> = db
            .run("fates_of", async |conn| {
                let wanted = request_outcome::request_id.eq_any(page.iter().map(|id| id.get()));
                Ok(request_outcome::table.filter(wanted).select(OutcomeRow::as_select()).load(conn).await?)
            })
            .await?;
        for row in rows {
            let row = row.read()?;
            decided.insert(row.request_id, row);
        }
    }
    Ok(decided)
}

/// What was decided about one request, if anything.
///
/// # Errors
/// [`DbError`].
pub async fn outcome_of(db: &Db, request_id: RequestId) -> Result<Option<Decided>, DbError> {
    Ok(outcomes_of(db, &[request_id]).await?.remove(&request_id))
}

/// An order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The request that became this order.
    pub request_id: RequestId,
    /// The sale.
    pub sale_id: SaleId,
    /// The buyer.
    pub user_id: UserId,
    /// Units bought.
    pub quantity: u32,
    /// What it costs, in the currency's smallest unit.
    pub amount_cents: i64,
    /// Which path landed it, as stored.
    pub source: String,
    /// When Redis accepted it, Unix milliseconds by its clock.
    pub accepted_at_ms: i64,
    /// When it was written, Unix milliseconds by the database's clock.
    pub created_at_ms: i64,
    /// When it was cancelled, Unix milliseconds by the database's clock.
    pub cancelled_at_ms: Option<i64>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
    /// Why.
    pub cancel_reason: Option<String>,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = orders)]
struct OrderRow {
    request_id: u64,
    sale_id: Vec<u8>,
    user_id: Vec<u8>,
    quantity: u32,
    amount_cents: i64,
    source: String,
    accepted_at: NaiveDateTime,
    created_at: NaiveDateTime,
    cancelled_at: Option<NaiveDateTime>,
    cancelled_by: Option<String>,
    cancel_reason: Option<String>,
}

impl OrderRow {
    fn read(self) -> Result<Order, DbError> {
        Ok(Order {
            request_id: read_request_id(self.request_id)?,
            sale_id: read_sale_id(&self.sale_id)?,
            user_id: read_user_id(&self.user_id)?,
            quantity: self.quantity,
            amount_cents: self.amount_cents,
            source: self.source,
            accepted_at_ms: unix_ms(self.accepted_at),
            created_at_ms: unix_ms(self.created_at),
            cancelled_at_ms: self.cancelled_at.map(unix_ms),
            cancelled_by: self.cancelled_by,
            cancel_reason: self.cancel_reason,
        })
    }
}

/// Everything the database knows about a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Story {
    /// Its outcome.
    pub decided: Option<Decided>,
    /// Its order.
    pub order: Option<Order>,
    /// Its row in the register of failures.
    pub failure: Option<FailedRequest>,
}

impl Story {
    /// The request's sale, as far as any of the rows tells.
    #[must_use]
    pub fn sale_id(&self) -> Option<&SaleId> {
        let decided = self.decided.as_ref().map(|decided| &decided.sale_id);
        decided
            .or(self.order.as_ref().map(|order| &order.sale_id))
            .or(self.failure.as_ref().map(|failure| &failure.sale_id))
    }
}

/// Everything the database knows about a request; all `None` when it knows nothing (yet).
///
/// # Errors
/// [`DbError`].
pub async fn story_of(db: &Db, request_id: RequestId) -> Result<Story, DbError> {
    let id = request_id.get();
    // The outcome is read last: whoever sees an order here also sees its outcome.
    let (order, failure, outcome) = db
        .run("story_of", async |conn| {
            let order = orders::table.find(id).select(OrderRow::as_select()).first(conn).await.optional()?;
            let failure = failed_request::table.find(id).select(FailedRow::as_select()).first(conn).await.optional()?;
            let outcome =
                request_outcome::table.find(id).select(OutcomeRow::as_select()).first(conn).await.optional()?;
            Ok((order, failure, outcome))
        })
        .await?;
    Ok(Story {
        decided: outcome.map(OutcomeRow::read).transpose()?,
        order: order.map(OrderRow::read).transpose()?,
        failure: failure.map(FailedRow::read).transpose()?,
    })
}

/// How many requests of a sale have their outcome, over all epochs.
///
/// # Errors
/// [`DbError`].
pub async fn count_of_sale(db: &Db, sale_id: &SaleId) -> Result<u64, DbError> {
    let of_sale = request_outcome::table.filter(request_outcome::sale_id.eq(sale_id.as_str().as_bytes()));
    let count: i64 = db.run("outcomes_count_of_sale", async |conn| Ok(of_sale.count().get_result(conn).await?)).await?;
    Ok(u64::try_from(count).unwrap_or(0))
}
