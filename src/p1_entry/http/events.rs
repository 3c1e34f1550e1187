//! `GET …/orders/{request_id}/events`: the status as server-sent events, until it is final.

use super::headers::{Caller, OrderInPath};
use super::state::PublicApi;
use super::waiters::{NoPlace, WaitingPlace};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::openapi::problem_responses;
use crate::http::problem::{Kind, Problem, RETRY_LATER_S};
use crate::p1_entry::status::OrderStatus;
use actix_web::HttpResponse;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::{self, Bytes};
use futures::stream;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::Instant;

/// Silence is broken this often, so that proxies and phones keep the connection.
const HEARTBEAT: Duration = Duration::from_secs(10);
/// A stream ends after this time, final or not; the caller asks again, as the demo shop does.
const STREAM_MAX: Duration = Duration::from_secs(300);

problem_responses! {
    FollowProblems: 400, 401, 404, 429, 503;
}

/// Follow a request until it is CONFIRMED or FAILED.
#[utoipa::path(
    get, path = "/v1/sales/{sale_id}/orders/{request_id}/events", operation_id = "follow_order", tag = "orders",
    params(OrderInPath),
    responses(
        (status = 200, description = "Events `status` whose data is a status document (OrderStatus); the last one is \
            final, then the stream ends. It also ends after five minutes; reconnect to go on.",
         content_type = "text/event-stream", body = String),
        FollowProblems,
    ),
    security(("bearer" = []))
)]
pub(super) async fn follow(
    public: web::Data<PublicApi>,
    Caller(user): Caller,
    order: web::Path<OrderInPath>,
) -> Result<HttpResponse, Problem> {
    let OrderInPath { sale_id: sale, request_id: id } = order.into_inner();
    // The first answer decides between a stream and a problem.
    let first = public.statuses.ask(&user, &sale, id, Duration::ZERO).await?;
    let place = if first.is_final() { None } else { Some(public.waiters.enter(&user).map_err(too_many)?) };
    let until = Instant::now() + STREAM_MAX;
    let follower = Follower { public, user, sale, id, until, next: Next::Send(first), _place: place };
    Ok(HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "text/event-stream"))
        .insert_header((CACHE_CONTROL, "no-store"))
        // A proxy that buffers would delay the events.
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(stream::unfold(follower, Follower::step)))
}

fn too_many(no_place: NoPlace) -> Problem {
    let problem = match no_place {
        NoPlace::Anyones => Kind::Overloaded
            .because_both("too many follow their orders; read the status instead", "跟踪订单的人过多，请改为查询状态"),
        NoPlace::Yours => Kind::RateLimited.because_both(
            "you follow too many orders at once; read the status instead",
            "同时跟踪的订单过多，请改为查询状态",
        ),
    };
    problem.retry_within_s(RETRY_LATER_S)
}

enum Next {
    Send(OrderStatus),
    Wait,
    End,
}

struct Follower {
    public: web::Data<PublicApi>,
    user: UserId,
    sale: SaleId,
    id: RequestId,
    until: Instant,
    next: Next,
    /// Held until the stream ends.
    _place: Option<WaitingPlace>,
}

impl Follower {
    async fn step(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        let text = match std::mem::replace(&mut self.next, Next::End) {
            Next::End => return None,
            Next::Send(status) => self.event(status).await,
            // Ended, not cut off: the buyer's next connection finds a process that stays.
            Next::Wait if self.public.statuses.is_stopping() || Instant::now() >= self.until => return None,
            Next::Wait => match self.public.statuses.ask(&self.user, &self.sale, self.id, HEARTBEAT).await {
                Ok(status) if status.is_final() => self.event(status).await,
                Ok(_) => self.heartbeat(),
                // Servers come back; the buyer's place in the queue does not depend on this stream.
                Err(_) => {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    self.heartbeat()
                }
            },
        };
        Some((Ok(Bytes::from(text)), self))
    }

    async fn event(&mut self, mut status: OrderStatus) -> String {
        if !status.is_final() {
            self.next = Next::Wait;
        }
        if status.is_confirmed() {
            status.order = self.public.my_orders.part(&self.sale, self.id).await;
        }
        format!("event: status\ndata: {}\n\n", serde_json::to_string(&status).unwrap_or_default())
    }

    fn heartbeat(&mut self) -> String {
        self.next = Next::Wait;
        ": waiting\n\n".to_owned()
    }
}
