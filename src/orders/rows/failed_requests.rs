//! The register of failures (`failed_request`): open rows wait for P5 or a person, final ones have a FAILED outcome.
//!
//! A row never decides anything by itself; `request_outcome` does. A crash between two steps leaves an open row, which
//! [`close_settled`] closes once its request has an outcome.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::message::OrderMessage;
use crate::orders::rows::handles::RegisterRows;

use crate::store::mysql::codes::{FailureStatus, Reporter, cut};
use crate::store::mysql::columns::{MaybeUnixMs, UnixMs};
use crate::store::mysql::fault::DbError;
use crate::store::mysql::schema::failed_request;
use diesel::prelude::*;
use diesel_async::RunQueryDsl;

/// Most rows a listing returns.
pub(crate) const PAGE_MAX: i64 = 1000;

/// A row of the register.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = failed_request)]
pub struct FailedRequest {
    /// The request that failed.
    pub request_id: RequestId,
    /// The sale it was accepted in.
    pub sale_id: SaleId,
    /// The buyer who made it.
    pub user_id: UserId,
    /// Number of units that it wants.
    pub quantity: u32,
    /// Who reported it.
    #[diesel(column_name = source)]
    pub reporter: Reporter,
    /// Why it failed, a stable code.
    pub reason: String,
    /// For a person.
    pub detail: String,
    /// The message as it was met.
    pub payload: Vec<u8>,
    /// Where it stands.
    pub status: FailureStatus,
    /// First report, Unix milliseconds by the database's clock.
    #[diesel(column_name = created_at, deserialize_as = UnixMs)]
    pub(crate) created_at_ms: i64,
    /// When it stopped being open.
    #[diesel(column_name = resolved_at, deserialize_as = MaybeUnixMs)]
    pub(crate) resolved_at_ms: Option<i64>,
    /// Who or what closed it.
    pub resolved_by: Option<String>,
}

/// Which rows a listing wants.
#[derive(Debug, Clone, Default)]
pub struct FailedRequestFilter {
    /// Only this status.
    pub status: Option<FailureStatus>,
    /// Only this sale.
    pub sale_id: Option<SaleId>,
    /// Only request ids above this one: the last id of the page before.
    pub after: Option<RequestId>,
    /// At most this many rows; capped at [`PAGE_MAX`].
    pub limit: i64,
}

impl RegisterRows {
    /// Rows of the register, by request id.
    pub async fn list(&self, wanted: &FailedRequestFilter) -> Result<Vec<FailedRequest>, DbError> {
        self.db
            .run("register_list", async |conn| {
                let mut query = failed_request::table.select(FailedRequest::as_select()).into_boxed();
                if let Some(status) = wanted.status {
                    query = query.filter(failed_request::status.eq(status.code()));
                }
                if let Some(sale_id) = &wanted.sale_id {
                    query = query.filter(failed_request::sale_id.eq(sale_id.as_str().as_bytes()));
                }
                if let Some(after) = wanted.after {
                    query = query.filter(failed_request::request_id.gt(after.get()));
                }
                let page = query.order(failed_request::request_id).limit(wanted.limit.clamp(0, PAGE_MAX));
                Ok(page.load(conn).await?)
            })
            .await
    }
}

/// A failure of a request without an outcome.
#[derive(Debug, Clone)]
pub struct OpenFailure<'a> {
    /// The request, as the message or the ledger has it.
    pub accepted: &'a OrderMessage,
    /// Who met it.
    pub reporter: Reporter,
    /// Stable code, at most 24 characters are kept.
    pub reason: &'a str,
    /// For a person; cut to 1,000 characters.
    pub detail: &'a str,
    /// The message as it was met.
    pub payload: &'a [u8],
}

impl RegisterRows {
    /// Notes an open failure. `false`: the register has a row for this request already, which stays as it is.
    /// Repeating is safe.
    pub async fn open(&self, failure: &OpenFailure<'_>) -> Result<bool, DbError> {
        let purchase = &failure.accepted.purchase;
        let inserted = self
            .db
            .run("register_open", async |conn| {
                let row = (
                    failed_request::request_id.eq(purchase.request_id.get()),
                    failed_request::sale_id.eq(purchase.sale_id.as_str().as_bytes()),
                    failed_request::user_id.eq(purchase.user_id.as_str().as_bytes()),
                    failed_request::person.eq(purchase.person.as_ref().map(|person| person.as_str().as_bytes())),
                    failed_request::quantity.eq(purchase.quantity.get()),
                    failed_request::source.eq(failure.reporter.code()),
                    failed_request::reason.eq(cut(failure.reason, 24)),
                    failed_request::detail.eq(cut(failure.detail, crate::orders::persist::DETAIL_CHARS_MAX)),
                    failed_request::payload.eq(failure.payload),
                    failed_request::status.eq(FailureStatus::Open.code()),
                );
                Ok(diesel::insert_into(failed_request::table).values(row).execute(conn).await?)
            })
            .await;
        match inserted {
            Ok(_) => Ok(true),
            Err(DbError::Duplicate(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// How many rows are open.
    pub(crate) async fn open_count(&self) -> Result<i64, DbError> {
        let open = failed_request::table.filter(failed_request::status.eq(FailureStatus::Open.code()));
        self.db.run("register_open_count", async |conn| Ok(open.count().get_result(conn).await?)).await
    }

    /// Closes an open row by hand. `false`: there is no open row for this request.
    pub async fn resolve(&self, request_id: RequestId, by: &str) -> Result<bool, DbError> {
        let open = failed_request::table.find(request_id.get()).filter(failed_request::status.eq("open"));
        let closed = self
            .db
            .run("register_resolve", async |conn| {
                Ok(diesel::update(open)
                    .set((
                        failed_request::status.eq(FailureStatus::Resolved.code()),
                        failed_request::resolved_at.eq(diesel::dsl::sql("NOW(3)")),
                        failed_request::resolved_by.eq(cut(by, 64)),
                    ))
                    .execute(conn)
                    .await?)
            })
            .await?;
        Ok(closed > 0)
    }

    /// Closes the open rows whose request has its outcome by now: `resolved` for an order, `failed_final` for a failure. Returns
    /// how many it closed. Repeating is safe.
    pub async fn close_settled(&self, by: &str) -> Result<usize, DbError> {
        use diesel::sql_types::Text;
        self.db
            .run("register_close_settled", async |conn| {
                Ok(diesel::sql_query(
            "/* failed_requests::close_settled */ UPDATE failed_request f JOIN request_outcome o USING (request_id) \
             SET f.status = IF(o.kind = 'ORDER', 'resolved', 'failed_final'), f.reason = COALESCE(o.reason, f.reason), \
             f.resolved_at = NOW(3), f.resolved_by = ? WHERE f.status = 'open'",
        )
        .bind::<Text, _>(cut(by, 64))
        .execute(conn)
        .await?)
            })
            .await
    }

    /// Closes the open row of one request that has its outcome by now, as [`close_settled`] does. `false`: there is no such row.
    /// Repeating is safe.
    pub(crate) async fn close_settled_one(&self, request_id: RequestId, by: &str) -> Result<bool, DbError> {
        use diesel::sql_types::{BigInt, Text, Unsigned};
        let closed = self.db
        .run("register_close_settled_one", async |conn| {
            Ok(diesel::sql_query(
                "/* failed_requests::close_settled_one */ UPDATE failed_request f JOIN request_outcome o USING (request_id) \
                 SET f.status = IF(o.kind = 'ORDER', 'resolved', 'failed_final'), \
                 f.reason = COALESCE(o.reason, f.reason), f.resolved_at = NOW(3), f.resolved_by = ? \
                 WHERE f.status = 'open' AND f.request_id = ?",
            )
            .bind::<Text, _>(cut(by, 64))
            .bind::<Unsigned<BigInt>, _>(request_id.get())
            .execute(conn)
            .await?)
        })
        .await?;
        Ok(closed > 0)
    }
}
