//! A purchase from the buyer's side: checks in the order that keeps promises, then P2, then an answer.
//!
//! Replays come before everything that could refuse: whoever was accepted once hears "accepted" for ever, whatever has
//! happened to the sale since.

use super::catalog::{Catalog, Look, View};
use super::limits::Limits;
use super::overload::{Overload, overloaded};
use super::refusal::{paused, refusal};
use super::request_ids::RequestIds;
use super::room::Rooms;
use super::spans;
use super::tokens::{PurchaseToken, TokenFault, Tokens};
use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::domain::policy::Quantity;
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::shard::home_shard;
use crate::domain::states::{P1Entry, P2Reserve, State};
use crate::http::problem::{Kind, Problem};
use crate::p2_reserve::{Decision, Guard, Reserve};
use crate::runtime::now_ms;
use crate::store::redis::RedisStore;
use crate::telemetry::{count, traces};
use std::sync::Arc;

/// Clocks of two api processes may differ by this much; a token this much younger than the sold-out mark still gets through
/// to Redis, because it may be a winner's.
const CLOCK_SKEW_MS: i64 = 2_000;

/// What the entry works with. One a process.
pub struct Orders {
    /// Sales.
    pub catalog: Catalog,
    /// P2.
    pub reserve: Reserve,
    /// Whether this Redis may be sold on.
    pub guard: Guard,
    /// Purchase tokens.
    pub tokens: Tokens,
    /// Request ids.
    pub ids: RequestIds,
    /// Rate limits.
    pub limits: Limits,
    /// Load.
    pub overload: Overload,
    /// Waiting rooms.
    pub rooms: Rooms,
    /// For replays of a sale that is not open.
    pub redis: RedisStore,
    /// Shards of every sale.
    pub shards: u16,
}

/// A request id, its purchase token, and when that expires (Unix seconds).
pub type Issued = (RequestId, String, i64);

/// Where the status of a request can be asked.
#[must_use]
pub fn status_url(sale: &SaleId, id: RequestId) -> String {
    format!("/v1/sales/{sale}/orders/{id}")
}

impl Orders {
    /// The sale as the entry sees it.
    ///
    /// # Errors
    /// The problem to answer with.
    pub async fn view(&self, id: &SaleId) -> Result<Arc<View>, Problem> {
        match self.catalog.look(id).await {
            Look::Found(view) => Ok(view),
            Look::Missing => {
                count(State::P1(P1Entry::NotFound), 1);
                Err(Kind::SaleNotFound.because(format!("there is no sale {id}")))
            }
            Look::Loading => {
                count(State::P1(P1Entry::Loading), 1);
                Err(Kind::Loading.because("the sale is being loaded"))
            }
            Look::Unavailable => Err(Kind::Unavailable.because("the sale cannot be looked up right now")),
        }
    }

    /// Issues a purchase token: a request id now, for a purchase later. `place` is the ticket of a sale with a waiting room.
    ///
    /// # Errors
    /// The problem to answer with; no token before the start or after the end of stock, and none before the place's turn.
    pub async fn issue(&self, user: &UserId, sale: &SaleId, place: Option<&str>) -> Result<Issued, Problem> {
        let view = self.view(sale).await?;
        let now = now_ms();
        if let Some(problem) = refusal(&view, now) {
            return Err(problem);
        }
        if view.sold_out.is_some() {
            count(State::P1(P1Entry::SoldOut), 1);
            return Err(Kind::EntrySoldOut.into());
        }
        if view.sale.waiting_room {
            Box::pin(self.rooms.admit(&view, user, place)).await?;
        }
        self.take_rate(user).await?;
        let id = self.next_id()?;
        let (token, expires_at) = self.tokens.issue(id, user, sale, now).ok_or(Problem::from(Kind::Internal))?;
        Ok((id, token, expires_at))
    }

    /// Buys.
    ///
    /// # Errors
    /// The problem to answer with; only 504 leaves open whether the purchase was accepted.
    pub async fn buy(
        &self,
        user: UserId,
        sale: &SaleId,
        quantity: Quantity,
        token: Option<&str>,
    ) -> Result<RequestId, Problem> {
        let begun = traces::clock();
        let view = self.view(sale).await?;
        let now = now_ms();
        let token = token.map(|text| self.check_token(text, &user, sale, now)).transpose()?;
        if let Some(problem) = refusal(&view, now).or_else(|| self.unsafe_redis()) {
            return match token {
                Some(token) => self.replay_or(problem, user, sale, (token.request_id, quantity)).await,
                None => Err(problem),
            };
        }
        // A token is issued to whom the room let go, so nobody passes it by.
        if token.is_none() && (view.sale.token_required || view.sale.waiting_room) {
            return Err(Kind::TokenRequired
                .because(format!("get one with POST /v1/sales/{sale}/tokens and send it as Idempotency-Key")));
        }
        if view.sold_out.is_some_and(|mark| token.is_none_or(|token| token.issued_at_ms > mark.at_ms + CLOCK_SKEW_MS)) {
            count(State::P1(P1Entry::SoldOut), 1);
            return Err(Kind::EntrySoldOut.into());
        }
        let closed = self.overload.refusal();
        // Without a token it cannot be a replay: refused before any server is asked.
        if let (Some(problem), None) = (&closed, &token) {
            return Err(problem.clone());
        }
        self.take_rate(&user).await?;
        if let (Some(problem), Some(token)) = (closed, &token) {
            return self.replay_or(problem, user, sale, (token.request_id, quantity)).await;
        }
        let request_id = match token {
            Some(token) => token.request_id,
            None => self.next_id()?,
        };
        count(State::P1(P1Entry::Ready), 1);
        let shard = home_shard(&user, self.shards);
        let purchase = Purchase { request_id, sale_id: sale.clone(), user_id: user, quantity };
        let asked = traces::clock();
        let decision = self.reserve.decide(purchase, view.sale.epoch).await;
        spans::tell(request_id, begun, asked, &decision);
        self.answer(decision, (request_id, shard), &view).await
    }

    /// Nothing is sold while the guard refuses. What exactly is wrong is for operators: readiness, log and doctor say it.
    fn unsafe_redis(&self) -> Option<Problem> {
        self.guard.refusal().map(|why| {
            tracing::debug!(phase = "p1_entry", %why, "not selling");
            Kind::Unavailable.because("nothing is sold until the operators have corrected a server's settings")
        })
    }

    fn check_token(&self, text: &str, user: &UserId, sale: &SaleId, now: i64) -> Result<PurchaseToken, Problem> {
        self.tokens.check(text, user, sale, now).map_err(|fault| match fault {
            TokenFault::Invalid => Kind::TokenInvalid.because(
                "Idempotency-Key must be a token from POST …/tokens of this sale, issued to the same buyer, unchanged",
            ),
            TokenFault::Expired(id) => Kind::TokenExpired
                .because("if it was used in time, its purchase can be looked up")
                .about(id, status_url(sale, id)),
        })
    }

    /// The sale is not open; but if this very request was accepted before, it hears the same answer again.
    async fn replay_or(
        &self,
        problem: Problem,
        user: UserId,
        sale: &SaleId,
        (id, quantity): (RequestId, Quantity),
    ) -> Result<RequestId, Problem> {
        let shard = home_shard(&user, self.shards);
        let not_told = |detail: &str| Err(Kind::Unknown.because(detail).about(id, status_url(sale, id)));
        match Box::pin(self.redis.ledger.lookup_replicated(sale, shard, &[id])).await {
            Ok((records, replicated)) => match records.into_iter().next().flatten() {
                Some(record) if record.user_id == user && record.quantity == quantity => {
                    if !replicated {
                        return not_told("it was accepted, but too few replicas have it yet");
                    }
                    count(State::P2(P2Reserve::Replayed), 1);
                    Ok(id)
                }
                Some(_) => Err(Kind::TokenReused.into()),
                None => Err(problem),
            },
            Err(error) => {
                tracing::debug!(phase = "p1_entry", request_id = %id, %error, "replay look-up");
                not_told("whether it was accepted before cannot be told right now")
            }
        }
    }

    pub(super) async fn take_rate(&self, user: &UserId) -> Result<(), Problem> {
        self.limits.take(user).await.map_err(|seconds| Problem::from(Kind::RateLimited).retry_after_s(seconds))
    }

    fn next_id(&self) -> Result<RequestId, Problem> {
        self.ids.next().map_err(|error| Kind::Unavailable.because(error.to_string()))
    }

    async fn answer(
        &self,
        decision: Decision,
        (id, shard): (RequestId, u16),
        view: &View,
    ) -> Result<RequestId, Problem> {
        let sale = &view.sale.sale_id;
        let reserved = match decision {
            Decision::Decided(reserved) => reserved,
            Decision::Unknown => {
                return Err(Kind::Unknown
                    .because("the purchase may or may not have been accepted")
                    .about(id, status_url(sale, id)));
            }
            Decision::Unavailable => return Err(Kind::Unavailable.into()),
            Decision::AllEmpty => {
                count(State::P2(P2Reserve::BucketAllEmpty), 1);
                self.catalog.mark_sold_out(view).await;
                return Err(Kind::AllEmpty.into());
            }
            Decision::BucketEmpty => return Err(Kind::BucketEmpty.because("units are between two buckets")),
            Decision::Overloaded => return Err(overloaded("too many requests are waiting")),
        };
        if let Some(state) = reserved.state() {
            count(State::P2(state), 1);
        }
        tracing::debug!(phase = "p2_reserve", request_id = %id, %sale, ?reserved, "decided");
        match reserved {
            Reserved::Accepted => {
                self.overload.accepted(sale, shard, id);
                Ok(id)
            }
            Reserved::Replayed => Ok(id),
            Reserved::DuplicateBuyer(first) => {
                Err(Kind::Duplicate.because("one purchase a buyer in this sale").about(first, status_url(sale, first)))
            }
            Reserved::LimitExceeded(owned) => Err(Kind::LimitExceeded.because(format!(
                "the limit is {} a buyer, you have {owned}",
                view.sale.policy.limit().unwrap_or_default()
            ))),
            Reserved::Short(0) => {
                self.catalog.mark_sold_out(view).await;
                Err(Kind::SoldOut.into())
            }
            Reserved::Short(left) => Err(Kind::NotEnough.because(format!("{left} left")).remaining(left)),
            Reserved::Conflict => Err(Kind::TokenReused.because("repeat it with the quantity of the first time")),
            Reserved::Paused => Err(paused("stopped by an operator")),
            Reserved::Closed => Err(Kind::Ended.into()),
            Reserved::Frozen | Reserved::NotLoaded => Err(paused("closed until its stock has been checked")),
            Reserved::StaleEpoch => {
                self.catalog.forget(sale).await;
                Err(Kind::Loading.because("the sale is being reloaded"))
            }
            Reserved::Backlog => Err(overloaded("more orders are waiting than can be landed in time")),
            Reserved::Damaged => {
                tracing::error!(phase = "p2_reserve", %sale, "the sale's keys in redis are damaged, nothing is sold; run seckill audit");
                Err(Kind::Unavailable.into())
            }
            Reserved::OtherShards => {
                tracing::error!(phase = "p2_reserve", %sale, shards = self.shards, "the sale was warmed for another number of shards, nothing is sold; set redis.shards back");
                Err(Kind::Unavailable.into())
            }
        }
    }
}
