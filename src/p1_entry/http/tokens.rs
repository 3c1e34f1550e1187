//! `POST …/tokens`: a purchase token, so that every repeat of a purchase is the same purchase.

use super::headers::{CallerWithFacts, TokenHeaders};
use super::state::PublicApi;
use crate::domain::ids::RequestId;
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::Problem;
use crate::p1_entry::purchasing::TokenCall;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::{HttpResponse, web};
use chrono::{DateTime, SecondsFormat};
use serde::Serialize;

/// A purchase token.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Issued)]
pub(super) struct IssuedToken {
    /// The request it stands for; a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    request_id: RequestId,
    /// Send it as Idempotency-Key.
    token: String,
    /// The end of its time, RFC 3339.
    #[schema(example = "2026-11-11T12:15:00Z")]
    expires_at: String,
}

problem_responses! {
    TokenProblems: 400, 401, 403, 404, 410, 423, 425, 428, 429, 503;
}

/// Get a purchase token.
///
/// A sale with the challenge `pow:N` answers 428 `P1-Q4` first, with a nonce in `challenge`. Find 1 to 20 decimal digits so that
/// the SHA-256 of `nonce:digits` begins with N zero bits, and ask again with that text as `Seckill-Solution`. A solution that does not
/// count, or has expired, gets 428 with a new nonce; one that counts does so for its buyer and sale until the nonce expires. With the
/// challenge `hook` the shop judges the buyer: 403 `P1-Q5` when it refuses.
#[utoipa::path(
    post, path = "/v1/sales/{sale_id}/tokens", operation_id = "issue_token", tag = "orders",
    params(
        SaleInPath,
        ("Seckill-Place" = Option<String>, Header, description = "The ticket of a released place, in a sale with a waiting room"),
        ("Seckill-Pass" = Option<String>, Header, description = "A pass, for a sale that needs one, or facts that it has"),
        ("Seckill-Solution" = Option<String>, Header, description = "The solution of a proof of work, `nonce:digits`"),
    ),
    responses(
        (status = 201, description = "A token for one purchase of this buyer in this sale", body = IssuedToken),
        TokenProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn issue(
    public: web::Data<PublicApi>,
    CallerWithFacts { user, shown }: CallerWithFacts,
    sale: web::Path<SaleInPath>,
    TokenHeaders { ticket, solution, seen }: TokenHeaders,
) -> Result<HttpResponse, Problem> {
    let call = TokenCall {
        user: &user,
        shown: shown.as_deref(),
        sale: &sale.sale_id,
        ticket: ticket.as_deref(),
        solution: solution.as_deref(),
        seen: seen.as_deref(),
    };
    let issued = public.token_issuer.issue(call).await?;
    let expires_at =
        DateTime::from_timestamp(issued.expires_at_s, 0).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true);
    Ok(HttpResponse::Created().insert_header((CACHE_CONTROL, "no-store")).json(IssuedToken {
        request_id: issued.request_id,
        token: issued.token,
        expires_at,
    }))
}
