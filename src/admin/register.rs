//! The register of failures (E10): open rows wait for P5 or a person, final ones have a FAILED outcome.

use super::Admin;
use super::api::{answer, query};
use crate::domain::ids::{RequestId, SaleId};
use crate::http::problem::Kind;
use crate::store::mysql::codes::FailureStatus;
use crate::store::mysql::failed_requests::{self, FailedRequest, FailedRequestFilter};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::Deserialize;
use serde_json::{Value, json};

/// Most rows of one answer.
const PAGE_MAX: i64 = 200;
/// Bytes of a message shown; `dlq show` has all of it.
const PAYLOAD_BYTES_MAX: usize = 4_096;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/register", web::get().to(list));
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegisterQuery {
    status: Option<String>,
    sale_id: Option<SaleId>,
    after: Option<RequestId>,
    limit: Option<i64>,
}

async fn list(admin: web::Data<Admin>, request: HttpRequest) -> HttpResponse {
    let work = async {
        let RegisterQuery { status, sale_id, after, limit } = query(&request)?;
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
        "payload": shown(&row.payload),
        "status": row.status.code(),
        "created_at_ms": row.created_at_ms,
        "resolved_at_ms": row.resolved_at_ms,
        "resolved_by": row.resolved_by,
    })
}

/// The beginning of a message as text.
pub(super) fn shown(payload: &[u8]) -> String {
    let head = payload.get(..PAYLOAD_BYTES_MAX).unwrap_or(payload);
    let mut text = String::from_utf8_lossy(head).into_owned();
    if head.len() < payload.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_and_says_so() {
        assert_eq!(shown(b"{}"), "{}");
        assert_eq!(shown(&[b'x'; PAYLOAD_BYTES_MAX + 1]).chars().count(), PAYLOAD_BYTES_MAX + 1);
        assert!(shown(&[b'x'; PAYLOAD_BYTES_MAX + 1]).ends_with('…'));
        assert_eq!(shown(&[0xff, b'a']), "\u{fffd}a");
    }
}
