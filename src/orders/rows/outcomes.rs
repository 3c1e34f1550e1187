//! The recorded outcomes of requests.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::message::{OrderMessage, PayloadHash};
use crate::domain::outcome::Outcome;
use crate::orders::rows::handles::RequestRows;
use crate::store::mysql::codes::{read_outcome, unreadable};
use crate::store::mysql::columns::UnixMs;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{request_outcome, sale_epochs};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Longest IN list.
const IDS_MAX: usize = 1000;

/// The recorded outcome of a request, and the key facts of its acceptance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The request that has this outcome.
    pub request_id: RequestId,
    /// An order or a failure.
    pub outcome: Outcome,
    /// The sale it was accepted in.
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
    pub(crate) decided_at_ms: i64,
}

impl RequestOutcome {
    /// Whether it decides this very purchase, under whatever number: the same request, sale, buyer and units. Of a loser of a number
    /// given twice only the request and the sale are compared; its id belongs to one buyer.
    pub(crate) fn is_of(&self, accepted: &OrderMessage) -> bool {
        if self.request_id != accepted.purchase.request_id || self.sale_id != accepted.purchase.sale_id {
            return false;
        }
        self.number.is_none_or(|number| {
            let decided = OrderMessage { shard: self.shard, epoch: self.epoch, number, ..accepted.clone() };
            decided.payload_hash() == self.payload_hash
        })
    }

    /// Whether it has this very number.
    pub(crate) fn has_number_of(&self, accepted: &OrderMessage) -> bool {
        (self.shard, self.epoch, self.number) == (accepted.shard, accepted.epoch, Some(accepted.number))
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = request_outcome)]
pub(crate) struct StoredOutcomeRow {
    request_id: RequestId,
    kind: String,
    reason: Option<String>,
    sale_id: SaleId,
    shard: u16,
    epoch: u32,
    number: Option<u64>,
    payload_hash: Vec<u8>,
    created_at: UnixMs,
}

impl StoredOutcomeRow {
    pub(crate) fn read(self) -> Result<RequestOutcome, DbError> {
        Ok(RequestOutcome {
            request_id: self.request_id,
            outcome: read_outcome(&self.kind, self.reason.as_deref())?,
            sale_id: self.sale_id,
            shard: self.shard,
            epoch: self.epoch,
            number: self.number,
            payload_hash: PayloadHash::try_from(self.payload_hash.as_slice())
                .map_err(|_ignored| unreadable("payload_hash", &format!("{:?}", self.payload_hash)))?,
            decided_at_ms: self.created_at.into(),
        })
    }
}

impl RequestRows {
    /// The outcomes of those of `ids` that have one. Any number of ids; one statement for each 1,000.
    pub(crate) async fn outcomes_of(&self, ids: &[RequestId]) -> Result<HashMap<RequestId, RequestOutcome>, DbError> {
        let mut decided = HashMap::with_capacity(ids.len());
        for page in ids.chunks(IDS_MAX) {
            let rows: Vec<StoredOutcomeRow> = self
                .db
                .run("fates_of", async |conn| {
                    let wanted = request_outcome::request_id.eq_any(page.iter().map(|id| id.get()));
                    Ok(request_outcome::table.filter(wanted).select(StoredOutcomeRow::as_select()).load(conn).await?)
                })
                .await?;
            for row in rows {
                let row = row.read()?;
                decided.insert(row.request_id, row);
            }
        }
        Ok(decided)
    }

    /// The outcome of one request, if it has one.
    pub async fn outcome_of(&self, request_id: RequestId) -> Result<Option<RequestOutcome>, DbError> {
        Ok(self.outcomes_of(&[request_id]).await?.remove(&request_id))
    }

    /// How many requests of a sale have their outcome, over all epochs.
    pub(crate) async fn count_of_sale(&self, sale_id: &SaleId) -> Result<u64, DbError> {
        let of_sale = request_outcome::table.filter(request_outcome::sale_id.eq(sale_id.as_str().as_bytes()));
        let count: i64 =
            self.db.run("outcomes_count_of_sale", async |conn| Ok(of_sale.count().get_result(conn).await?)).await?;
        Ok(u64::try_from(count).unwrap_or(0))
    }

    /// When the outcome with the highest acceptance number of this (sale, shard, epoch) was written, Unix milliseconds by the database's
    /// clock; `None` when there is none.
    pub(crate) async fn newest_ms(&self, sale_id: &SaleId, shard: u16, epoch: u32) -> Result<Option<i64>, DbError> {
        let newest: Option<UnixMs> = self
            .db
            .run("outcomes_newest", async |conn| {
                let of_series = request_outcome::table
                    .filter(request_outcome::sale_id.eq(sale_id.as_str().as_bytes()))
                    .filter(request_outcome::shard.eq(shard))
                    .filter(request_outcome::epoch.eq(epoch));
                let newest = of_series.order(request_outcome::number.desc()).select(request_outcome::created_at);
                Ok(newest.first(conn).await.optional()?)
            })
            .await?;
        Ok(newest.map(Into::into))
    }

    /// Whether it was written down where the numbers of this (sale, shard, epoch) ended: P5 does before their keys leave Redis.
    pub(crate) async fn has_end(&self, sale_id: &SaleId, shard: u16, epoch: u32) -> Result<bool, DbError> {
        let end = sale_epochs::table.find((sale_id.as_str().as_bytes(), epoch, shard));
        self.db.run("outcomes_has_end", async |conn| Ok(end.count().get_result::<i64>(conn).await? > 0)).await
    }
}

#[cfg(feature = "faults")]
impl RequestRows {
    /// What `Mechanism::FailedIsFinal` forbids: a failure makes room for an order.
    pub(crate) async fn forget_outcome(&self, request_id: RequestId) -> Result<(), DbError> {
        let outcome = request_outcome::table.find(request_id.get());
        self.db.run("forget_outcome", async |conn| Ok(diesel::delete(outcome).execute(conn).await?)).await?;
        Ok(())
    }
}
