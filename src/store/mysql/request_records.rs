//! Everything the database knows about one request: its outcome, its order, its row in `failed_request`. Reads only.

use super::columns::{MaybeUnixMs, UnixMs};
use super::failed_requests::FailedRequest;
use super::fault::DbError;
use super::outcomes::{RequestOutcome, StoredOutcomeRow};
use super::pool::Db;
use super::schema::{failed_request, orders, request_outcome};
use crate::domain::ids::{RequestId, SaleId, UserId};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// A row of `orders`.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = orders)]
pub struct OrderRecord {
    /// The request that became this order.
    pub request_id: RequestId,
    /// The sale that sold it.
    pub sale_id: SaleId,
    /// The buyer who owns it.
    pub user_id: UserId,
    /// Number of units, at least 1.
    pub quantity: u32,
    /// What it costs, in the currency's smallest unit.
    pub amount_cents: i64,
    /// The path that brought it to the database, as stored.
    pub source: String,
    /// When Redis accepted it, Unix milliseconds by its clock.
    #[diesel(column_name = accepted_at, deserialize_as = UnixMs)]
    pub accepted_at_ms: i64,
    /// When it was written, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    pub(crate) created_at_ms: i64,
    /// When it was cancelled, Unix milliseconds by the database's clock.
    #[diesel(column_name = cancelled_at, deserialize_as = MaybeUnixMs)]
    pub(crate) cancelled_at_ms: Option<i64>,
    /// Who cancelled it.
    pub cancelled_by: Option<String>,
    /// Why it was cancelled, in words.
    pub cancel_reason: Option<String>,
}

/// Everything the database knows about a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestRecords {
    /// Its row in `request_outcome`.
    pub decided: Option<RequestOutcome>,
    /// Its row in `orders`.
    pub order: Option<OrderRecord>,
    /// Its row in `failed_request`.
    pub failure: Option<FailedRequest>,
}

impl RequestRecords {
    /// The request's sale, from the first row that exists.
    #[must_use]
    pub(crate) fn sale_id(&self) -> Option<&SaleId> {
        let decided = self.decided.as_ref().map(|decided| &decided.sale_id);
        decided
            .or(self.order.as_ref().map(|order| &order.sale_id))
            .or(self.failure.as_ref().map(|failure| &failure.sale_id))
    }
}

/// Everything the database knows about a request; all `None` when it knows nothing (yet).
pub async fn records_of(db: &Db, request_id: RequestId) -> Result<RequestRecords, DbError> {
    let id = request_id.get();
    // The outcome is read last: if an order is seen here, its outcome is seen, too.
    let (order, failure, outcome) = db
        .run("story_of", async |conn| {
            let order = orders::table.find(id).select(OrderRecord::as_select()).first(conn).await.optional()?;
            let failure =
                failed_request::table.find(id).select(FailedRequest::as_select()).first(conn).await.optional()?;
            let outcome =
                request_outcome::table.find(id).select(StoredOutcomeRow::as_select()).first(conn).await.optional()?;
            Ok((order, failure, outcome))
        })
        .await?;
    Ok(RequestRecords { decided: outcome.map(StoredOutcomeRow::read).transpose()?, order, failure })
}
