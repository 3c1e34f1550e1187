//! `POST …/places` and `GET …/places`: the waiting room of a sale that has one.

use super::headers::{Caller, CallerWithFacts, PlaceTicket};
use super::state::PublicApi;
use crate::http::extract::SaleInPath;
use crate::http::openapi::problem_responses;
use crate::http::problem::Problem;
use crate::p1_entry::waiting_room::AdmissionStatus;
use actix_web::http::header::{CACHE_CONTROL, RETRY_AFTER};
use actix_web::{HttpResponse, web};
use serde::Serialize;

/// A place in the waiting room.
#[derive(Serialize, utoipa::ToSchema)]
#[schema(as = QueuePlace)]
pub(super) struct QueuePosition {
    /// `waiting` or `released`: then get a purchase token with the ticket.
    #[schema(example = "waiting")]
    state: &'static str,
    /// The place, from 1; absent before the start, when places are drawn among all who have come.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<u64>,
    /// How many before it are not released.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u64>,
    /// About how many seconds until it is released, by what was released in the last half minute; 0 once it is. Null: not known, before
    /// the start, after a pause, or more than a day.
    #[schema(required = true, example = 90)]
    estimated_wait_s: Option<u64>,
    /// Send it as Seckill-Place; absent before the start: come again then.
    #[serde(skip_serializing_if = "Option::is_none")]
    ticket: Option<String>,
}

problem_responses! {
    EnterProblems: 400, 401, 403, 404, 410, 429, 503;
    PositionProblems: 400, 401, 403, 404, 410, 428, 503;
}

/// Take a place in the waiting room.
#[utoipa::path(
    post, path = "/v1/sales/{sale_id}/places", operation_id = "take_place", tag = "waiting room",
    params(
        SaleInPath,
        ("Seckill-Pass" = Option<String>, Header, description = "A pass, for a sale that needs one, or facts that it has"),
    ),
    responses(
        (status = 200, description = "In the room; coming again changes nothing. Who comes before the start comes again after \
            it, when `Retry-After` says, to get the place that was drawn", body = QueuePosition,
         headers(("Retry-After" = u64, description = "When to ask again, seconds; absent once released"))),
        EnterProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn enter(
    public: web::Data<PublicApi>,
    CallerWithFacts { user, shown }: CallerWithFacts,
    sale: web::Path<SaleInPath>,
) -> Result<HttpResponse, Problem> {
    Ok(answer(public.rooms.enter((&user, shown.as_deref()), &sale.sale_id).await?))
}

/// Ask how far it is.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/places", operation_id = "show_place", tag = "waiting room",
    params(SaleInPath, ("Seckill-Place" = Option<String>, Header, description = "The ticket; without one the answer is 428")),
    responses(
        (status = 200, description = "The place", body = QueuePosition,
         headers(("Retry-After" = u64, description = "When to ask again, seconds; absent once released"))),
        PositionProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn show(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    sale: web::Path<SaleInPath>,
    PlaceTicket(ticket): PlaceTicket,
) -> Result<HttpResponse, Problem> {
    Ok(answer(public.rooms.position(&user, &sale.sale_id, ticket.as_deref()).await?))
}

fn answer(status: AdmissionStatus) -> HttpResponse {
    let (place, ticket) = status.place.unzip();
    let mut answer = HttpResponse::Ok();
    answer.insert_header((CACHE_CONTROL, "no-store"));
    if let Some(seconds) = status.ask_again_s {
        answer.insert_header((RETRY_AFTER, seconds));
    }
    answer.json(QueuePosition {
        state: if status.released { "released" } else { "waiting" },
        place,
        ahead: status.ahead,
        estimated_wait_s: status.estimated_wait_s,
        ticket,
    })
}
