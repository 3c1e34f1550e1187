//! `POST …/entries`, `GET …/entries/mine`, `DELETE …/entries/{entry_id}`: a buyer's entry in the line of a sale.

use super::headers::{self, Caller};
use super::state::PublicApi;
use super::{body, orders::BuyRequest};
use crate::domain::ids::{EntryId, RequestId, SaleId};
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::Problem;
use crate::http::times::shown_time;
use crate::p1_entry::lines::MyEntry;
use actix_web::http::header::{CACHE_CONTROL, LOCATION};
use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};

/// An entry in the line of a sale.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = Entry)]
pub(super) struct EntryDocument {
    /// Public in the list of the draw; a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    entry_id: EntryId,
    #[schema(value_type = String)]
    sale_id: SaleId,
    /// Units wanted.
    quantity: u32,
    /// WAITING, OFFERED (its units are on their way to an order, or wait to be paid), TAKEN, LAPSED or LEFT.
    #[schema(example = "WAITING")]
    state: &'static str,
    /// Its state code.
    #[schema(example = "P6-W0")]
    code: &'static str,
    /// When it was written, RFC 3339.
    entered_at: String,
    /// From 1; null until a raffle is drawn, and when it left before the close.
    rank: Option<u32>,
    /// Entries in front of it that may get units before it, 10,000 at most are counted; null without a rank.
    before: Option<u32>,
    /// The request of its offer: ask for it and its order as for those of a purchase. Null before its turn.
    #[schema(value_type = Option<String>, example = "254385310867492999")]
    request_id: Option<RequestId>,
    /// Why it lapsed: EXPIRED, CANCELLED, BLOCKED, LIMIT (its buyer has all that the limit allows), LOST, or why the order failed.
    reason: Option<String>,
    /// Signed by the shop: entry, sale, buyer, quantity, time. Keep it.
    receipt: Option<String>,
}

impl EntryDocument {
    fn of(sale: &SaleId, entry: MyEntry) -> Self {
        Self {
            entry_id: entry.id,
            sale_id: sale.clone(),
            quantity: entry.quantity,
            state: entry.state.code(),
            code: entry.state.state().code(),
            entered_at: shown_time(entry.entered_at_ms),
            rank: entry.rank,
            before: entry.before,
            request_id: entry.request_id,
            reason: entry.lapse_reason,
            receipt: entry.receipt,
        }
    }
}

/// The entry in a path.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(super) struct EntryInPath {
    /// Id of the sale.
    #[param(value_type = String, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    sale_id: SaleId,
    /// Id of the entry.
    #[param(value_type = String, pattern = "^[1-9][0-9]{0,18}$")]
    entry_id: EntryId,
}

problem_responses! {
    EnterProblems: 400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 429, 503;
    MyEntryProblems: 400, 401, 404, 429, 500, 503;
    LeaveProblems: 400, 401, 404, 409, 429, 503;
}

/// Enter the line of a sale: once a buyer, or a person where the sale limits by person.
#[utoipa::path(
    post, path = "/v1/sales/{sale_id}/entries", operation_id = "enter_line", tag = "lines", request_body = BuyRequest,
    params(
        SaleInPath,
        ("Seckill-Pass" = Option<String>, Header, description = "A pass, for a sale that needs one, or facts that it has"),
    ),
    responses(
        (status = 201, description = "You are in the line: the entry is in the database", body = EntryDocument,
         headers(("Location" = String, description = "Where to ask for it"))),
        EnterProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn enter(
    public: web::Data<PublicApi>,
    request: HttpRequest,
    path: web::Path<SaleInPath>,
    mut payload: web::Payload,
) -> Result<HttpResponse, Problem> {
    let declared = body::declared_length(request.headers());
    let head = headers::buyer(&public, request.headers())
        .and_then(|user| headers::json_only(request.headers()).map(|()| user));
    let user = match head {
        Ok(user) => user,
        Err(problem) => {
            body::discard(&public.bounds, declared, &mut payload).await;
            return Err(problem);
        }
    };
    let shown = headers::shown(&public, request.headers());
    let body = body::read(&public.bounds, declared, &mut payload).await?;
    let quantity = body::quantity(&body, public.bounds.quantity_max)?;
    let sale = &path.sale_id;
    let entry = public.lines.enter((user, shown), sale, quantity).await?;
    Ok(HttpResponse::Created()
        .insert_header((CACHE_CONTROL, "no-store"))
        .insert_header((LOCATION, format!("/v1/sales/{sale}/entries/mine")))
        .json(EntryDocument::of(sale, entry)))
}

/// My entry in the line of a sale, with its rank once the line is drawn.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/entries/mine", operation_id = "show_my_entry", tag = "lines",
    params(SaleInPath),
    responses((status = 200, description = "The entry", body = EntryDocument), MyEntryProblems),
    security(("bearer" = []))
)]
pub(super) async fn mine(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    path: web::Path<SaleInPath>,
) -> Result<HttpResponse, Problem> {
    let entry = public.lines.mine(&user, &path.sale_id).await?;
    let document = EntryDocument::of(&path.sale_id, entry);
    Ok(HttpResponse::Ok().insert_header((CACHE_CONTROL, "no-store")).json(document))
}

/// Leave the line. Before the close the entry leaves the list as well; behind it the list stays what it is.
#[utoipa::path(
    delete, path = "/v1/sales/{sale_id}/entries/{entry_id}", operation_id = "leave_line", tag = "lines",
    params(EntryInPath),
    responses((status = 204, description = "You are not in the line, now or since before"), LeaveProblems),
    security(("bearer" = []))
)]
pub(super) async fn leave(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    path: web::Path<EntryInPath>,
) -> Result<HttpResponse, Problem> {
    public.lines.leave(&user, &path.sale_id, path.entry_id).await?;
    Ok(HttpResponse::NoContent().insert_header((CACHE_CONTROL, "no-store")).finish())
}
