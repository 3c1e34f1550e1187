//! The failed requests (E10): open ones wait for P5 or a person, final ones have a FAILED outcome.

use super::calls::ViewCall;
use super::json_api::{AdminAnswer, ReadProblems, answer, message_text};
use super::state::Admin;
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::problem::Kind;
use crate::orders::rows::failed_requests::{FailedRequest, FailedRequestFilter};
use crate::store::mysql::codes::FailureStatus;
use actix_web::web;
use serde::{Deserialize, Serialize};

/// Rows of one answer, at most.
const PAGE_MAX: i64 = 200;

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FailedRequestsQuery {
    /// `open`, `failed_final` or `resolved`.
    status: Option<String>,
    /// Only requests of this sale.
    #[param(value_type = Option<String>)]
    sale_id: Option<SaleId>,
    /// Only requests after this one: the last one of the page before.
    #[param(value_type = Option<String>)]
    after: Option<RequestId>,
    /// How many; 200 when left out.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<i64>,
}

/// List the failed requests.
#[utoipa::path(
    get, path = "/admin/v1/register", operation_id = "list_failed_requests", tag = "dead letters",
    params(FailedRequestsQuery),
    responses((status = 200, description = "A page of them", body = FailedRequestsPage), ReadProblems)
)]
pub(super) async fn list(
    _call: ViewCall,
    admin: web::Data<Admin>,
    query: web::Query<FailedRequestsQuery>,
) -> AdminAnswer {
    let FailedRequestsQuery { status, sale_id, after, limit } = query.into_inner();
    let known = |code: String| {
        FailureStatus::from_code(&code).ok_or_else(|| {
            Kind::Unprocessable.because_both(
                "status: expected open, failed_final or resolved",
                "status：应为 open、failed_final 或 resolved",
            )
        })
    };
    let status = status.map(known).transpose()?;
    let limit = limit.unwrap_or(PAGE_MAX);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(Kind::Unprocessable
            .because_both(format!("limit: expected 1 to {PAGE_MAX}"), format!("limit：应为 1 至 {PAGE_MAX}")));
    }
    let rows = admin.servers.rows.register.list(&FailedRequestFilter { status, sale_id, after, limit }).await?;
    let more = i64::try_from(rows.len()).is_ok_and(|count| count == limit);
    answer(FailedRequestsPage { rows: rows.into_iter().map(FailedRequestDocument::of).collect(), more })
}

/// One failed request.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = FailedRequest)]
struct FailedRequestDocument {
    #[schema(value_type = String)]
    request_id: RequestId,
    #[schema(value_type = String)]
    sale_id: SaleId,
    #[schema(value_type = String)]
    user_id: UserId,
    /// Units that it wants.
    quantity: u32,
    /// Who reported it.
    source: &'static str,
    /// Why it failed, a stable code.
    reason: String,
    /// For a person.
    detail: String,
    /// The beginning of the message.
    payload: String,
    /// `open`, `failed_final` or `resolved`.
    #[schema(example = "open")]
    status: &'static str,
    /// First report, Unix milliseconds.
    created_at_ms: i64,
    /// When it stopped being open, Unix milliseconds.
    resolved_at_ms: Option<i64>,
    /// Who or what closed it.
    resolved_by: Option<String>,
}

impl FailedRequestDocument {
    fn of(row: FailedRequest) -> Self {
        Self {
            request_id: row.request_id,
            sale_id: row.sale_id,
            user_id: row.user_id,
            quantity: row.quantity,
            source: row.reporter.code(),
            reason: row.reason,
            detail: row.detail,
            payload: message_text(&row.payload),
            status: row.status.code(),
            created_at_ms: row.created_at_ms,
            resolved_at_ms: row.resolved_at_ms,
            resolved_by: row.resolved_by,
        }
    }
}

/// A page of failed requests.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct FailedRequestsPage {
    rows: Vec<FailedRequestDocument>,
    /// Whether the page is full: ask for those after its last one.
    more: bool,
}
