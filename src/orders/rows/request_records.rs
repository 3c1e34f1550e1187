//! Everything the database knows about one request: its outcome, its order, its row in `failed_request`. Reads only.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::outcome::Outcome;
use crate::orders::rows::failed_requests::FailedRequest;
use crate::orders::rows::handles::RequestRows;
use crate::orders::rows::outcomes::{RequestOutcome, StoredOutcomeRow};
use crate::orders::rows::payment::Payment;
use crate::orders::rows::row::OrderRow;
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::{failed_request, orders, request_outcome, sales};
use diesel::prelude::*;
use diesel_async::RunQueryDsl;
use std::collections::HashMap;

/// Everything the database knows about a request.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestRecords {
    /// Its row in `request_outcome`.
    pub decided: Option<RequestOutcome>,
    /// Its row in `orders`.
    pub order: Option<OrderRow>,
    /// The currency of the order's sale, ISO 4217 code.
    pub currency: Option<String>,
    /// Its row in `failed_request`.
    pub failure: Option<FailedRequest>,
    /// Its rows in `payments`, oldest first.
    pub payments: Vec<Payment>,
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

impl RequestRows {
    /// Everything the database knows about a request; all `None` when it knows nothing (yet).
    pub async fn records_of(&self, request_id: RequestId) -> Result<RequestRecords, DbError> {
        let id = request_id.get();
        // The outcome is read last: if an order is seen here, its outcome is seen, too.
        let (order, currency, failure, outcome) = self
            .db
            .run("story_of", async |conn| {
                let order = orders::table.find(id).select(OrderRow::as_select()).first(conn).await.optional()?;
                let sale = order.as_ref().map_or(&[][..], |order: &OrderRow| order.sale_id.as_str().as_bytes());
                let currency = sales::table.find(sale).select(sales::currency).first(conn).await.optional()?;
                let failure =
                    failed_request::table.find(id).select(FailedRequest::as_select()).first(conn).await.optional()?;
                let outcome = request_outcome::table
                    .find(id)
                    .select(StoredOutcomeRow::as_select())
                    .first(conn)
                    .await
                    .optional()?;
                Ok((order, currency, failure, outcome))
            })
            .await?;
        let payments = self.payments_of(request_id).await?;
        let decided = outcome.map(StoredOutcomeRow::read).transpose()?;
        Ok(RequestRecords { decided, order, currency, failure, payments })
    }
}

/// A request that has its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FinalRequest {
    /// An order or a failure.
    pub(crate) outcome: Outcome,
    /// The sale it was accepted in.
    pub(crate) sale_id: SaleId,
    /// The buyer who made it.
    pub(crate) user_id: UserId,
    /// Number of units that it wanted.
    pub(crate) quantity: u32,
}

impl RequestRows {
    /// Those of `ids` that have their outcome. One statement if none has; else one more for orders and one for failures.
    pub(crate) async fn final_requests(&self, ids: &[RequestId]) -> Result<HashMap<RequestId, FinalRequest>, DbError> {
        // The outcome is written with its order or failure: where the first is seen, the second is, too.
        let decided = self.outcomes_of(ids).await?;
        let ids_with = |ordered: bool| -> Vec<u64> {
            let wanted = decided.values().filter(|decided| (decided.outcome == Outcome::Ordered) == ordered);
            wanted.map(|decided| decided.request_id.get()).collect()
        };
        let (ordered, failed) = (ids_with(true), ids_with(false));
        let rows: Vec<(RequestId, SaleId, UserId, u32)> = self
            .db
            .run("final_requests", async |conn| {
                let mut rows = Vec::new();
                if !ordered.is_empty() {
                    let wanted = orders::table.filter(orders::request_id.eq_any(ordered));
                    let columns = (orders::request_id, orders::sale_id, orders::user_id, orders::quantity);
                    rows = wanted.select(columns).load(conn).await?;
                }
                if !failed.is_empty() {
                    use failed_request as f;
                    let wanted = f::table.filter(f::request_id.eq_any(failed));
                    rows.extend(wanted.select((f::request_id, f::sale_id, f::user_id, f::quantity)).load(conn).await?);
                }
                Ok(rows)
            })
            .await?;
        let known = |(request_id, sale_id, user_id, quantity)| {
            let outcome = decided.get(&request_id)?.outcome;
            Some((request_id, FinalRequest { outcome, sale_id, user_id, quantity }))
        };
        Ok(rows.into_iter().filter_map(known).collect())
    }
}
