//! The failed requests (E10): open ones wait for P5 or a person, final ones have a FAILED outcome.

use super::json_api::{answer, message_text, query};
use super::state::Admin;
use crate::domain::ids::{RequestId, SaleId};
use crate::http::problem::Kind;
use crate::store::mysql::codes::FailureStatus;
use crate::store::mysql::failed_requests::{self, FailedRequest, FailedRequestFilter};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Rows of one answer, at most.
const PAGE_MAX: i64 = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FailedRequestsQuery {
    status: Option<String>,
    sale_id: Option<SaleId>,
    after: Option<RequestId>,
    limit: Option<i64>,
}

pub(super) async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        let FailedRequestsQuery { status, sale_id, after, limit } = query(&request)?;
        let status = status
            .map(|code| {
                FailureStatus::from_code(&code)
                    .ok_or_else(|| Kind::Unprocessable.because("status: expected open, failed_final or resolved"))
            })
            .transpose()?;
        let limit = limit.unwrap_or(PAGE_MAX);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(Kind::Unprocessable.because(format!("limit: expected 1 to {PAGE_MAX}")));
        }
        let rows =
            failed_requests::list(&admin.servers.db, &FailedRequestFilter { status, sale_id, after, limit }).await?;
        let more = i64::try_from(rows.len()).is_ok_and(|count| count == limit);
        Ok(json!({ "rows": rows.iter().map(row).collect::<Vec<_>>(), "more": more }))
    };
    answer(&request, work.await)
}

fn row(row: &FailedRequest) -> Value {
    json!({
        "request_id": row.request_id,
        "sale_id": row.sale_id,
        "user_id": row.user_id,
        "quantity": row.quantity,
        "source": row.reporter.code(),
        "reason": row.reason,
        "detail": row.detail,
        "payload": message_text(&row.payload),
        "status": row.status.code(),
        "created_at_ms": row.created_at_ms,
        "resolved_at_ms": row.resolved_at_ms,
        "resolved_by": row.resolved_by,
    })
}
