//! What a buyer does: a purchase with its retries, as a patient client makes them.
//!
//! Input: purchases of the run, taken one at a time. Output: a tally. A buyer repeats after 429 and 503 as `Retry-After`
//! says. After 504, another 5xx or a cut answer it asks the status URL; unknown there, it repeats with the same token. Without
//! a token it must not repeat (it could buy twice), so it only polls the status, or gives up if no answer named a request id.

use super::calls::CallResult;
use super::report::{BuyerAnswer, FinalAnswer, LoadReport, is_final_no};
use super::virtual_user::VirtualUser;
use seckill::domain::ids::RequestId;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::Instant;

/// One purchase of one buyer.
#[derive(Clone, Copy)]
struct PlannedPurchase {
    /// Index into the run's buyers.
    buyer: u64,
    /// The request id of its purchase token, which is in [`VirtualUser::key`].
    ticket: Option<RequestId>,
    /// When it should have been sent, in a run with a rate.
    due: Option<Instant>,
}

impl VirtualUser {
    /// Buys until nothing is left to buy.
    pub async fn run(mut self) -> LoadReport {
        while let Some((index, due)) = self.shared.next().await {
            let plan = &self.shared.plan;
            let buyer = index % plan.buyers;
            let (duplicate, other) = (plan.duplicate_percent, plan.other_retry_percent);
            let duplicate = self.shared.chosen(index, 0, duplicate);
            let other = self.shared.chosen(index, 1, other);
            self.measured = index >= plan.unmeasured;
            self.purchase(PlannedPurchase { buyer, ticket: None, due }, duplicate).await;
            if other {
                self.purchase(PlannedPurchase { buyer, ticket: None, due: None }, false).await;
            }
            self.shared.finished.fetch_add(1, Relaxed);
        }
        self.latencies.end(&self.shared.latencies);
        self.seen.connected = self.connection.made();
        self.seen
    }

    async fn purchase(&mut self, mut wish: PlannedPurchase, duplicate: bool) {
        let keep = self.shared.plan.keep_history;
        self.seen.purchases += 1;
        if self.shared.plan.room
            && let Err(verdict) = self.wait_in_room(wish.buyer).await
        {
            return self.seen.record(self.answer_of(wish, verdict), keep);
        }
        if self.shared.plan.tokens {
            match self.get_purchase_token(wish.buyer).await {
                Ok(id) => wish.ticket = Some(id),
                Err(verdict) => return self.seen.record(self.answer_of(wish, verdict), keep),
            }
        }
        let final_answer = self.retry_until_final(wish).await;
        self.seen.record(final_answer, keep);
        match final_answer.verdict {
            FinalAnswer::Accepted => {
                self.shared.accepted.fetch_add(1, Relaxed);
                if let (true, Some(id)) = (self.shared.plan.asks_status, final_answer.request_id) {
                    let path = self.shared.forms.status_path(id);
                    // Its answer is counted; a purchase does not depend on it.
                    let _status = self.call_status(wish.buyer, &path).await;
                }
            }
            FinalAnswer::Refused { .. } => {}
            FinalAnswer::Unknown | FinalAnswer::NotSent => return,
        }
        if duplicate {
            let again = self.retry_until_final(PlannedPurchase { due: None, ..wish }).await;
            self.seen.replayed(&final_answer, again, keep);
        }
    }

    fn answer_of(&self, wish: PlannedPurchase, verdict: FinalAnswer) -> BuyerAnswer {
        let plan = &self.shared.plan;
        let user = plan.first_buyer + wish.buyer;
        BuyerAnswer { user, request_id: wish.ticket, quantity: plan.quantity, verdict, doubted: false }
    }

    /// A purchase token into `self.key`. Asking twice does no harm, so every trouble is a reason to ask again.
    async fn get_purchase_token(&mut self, buyer: u64) -> Result<RequestId, FinalAnswer> {
        let mut verdict = FinalAnswer::NotSent;
        let mut wait_s = None;
        for attempt in 0..=self.shared.plan.max_retries {
            if attempt > 0 && !self.pause(attempt, wait_s.take()).await {
                break;
            }
            match self.call_token(buyer).await {
                CallResult::Accepted(id) => return Ok(id),
                CallResult::Refused(status) => return Err(FinalAnswer::Refused { status }),
                CallResult::Later { status, seconds } => {
                    verdict = FinalAnswer::Refused { status };
                    wait_s = Some(seconds);
                }
                CallResult::Unknown { .. } | CallResult::NotSent => {}
            }
        }
        Err(verdict)
    }

    /// Sends one purchase until the answer is final or the retries are used up.
    async fn retry_until_final(&mut self, wish: PlannedPurchase) -> BuyerAnswer {
        let mut final_answer = self.answer_of(wish, FinalAnswer::NotSent);
        let mut wait_s = None;
        for attempt in 0..=self.shared.plan.max_retries {
            if attempt > 0 && !self.pause(attempt, wait_s.take()).await {
                break;
            }
            let due = wish.due.filter(|_| attempt == 0);
            match self.call_order(wish.buyer, wish.ticket.is_some(), due).await {
                CallResult::Accepted(id) => {
                    return BuyerAnswer { request_id: Some(id), verdict: FinalAnswer::Accepted, ..final_answer };
                }
                CallResult::Refused(status) if final_answer.doubted && !is_final_no(status) => return final_answer,
                CallResult::Refused(status) => {
                    return BuyerAnswer { verdict: FinalAnswer::Refused { status }, ..final_answer };
                }
                CallResult::Later { status, seconds } => {
                    wait_s = Some(seconds);
                    // "Later" does not say what became of an earlier try with an unknown outcome.
                    if !final_answer.doubted {
                        final_answer.verdict = FinalAnswer::Refused { status };
                    }
                }
                CallResult::NotSent => {}
                CallResult::Unknown { id, path } => {
                    self.seen.unknown += 1;
                    final_answer = BuyerAnswer {
                        request_id: final_answer.request_id.or(id),
                        verdict: FinalAnswer::Unknown,
                        doubted: true,
                        ..final_answer
                    };
                    let Some(id) = final_answer.request_id else { return final_answer };
                    let path = path.unwrap_or_else(|| self.shared.forms.status_path(id));
                    if self.is_known(wish, &path).await {
                        return BuyerAnswer { verdict: FinalAnswer::Accepted, ..final_answer };
                    }
                    if wish.ticket.is_none() {
                        return final_answer;
                    }
                }
            }
        }
        final_answer
    }

    /// Asks whether a request was accepted: once if the purchase can be repeated, else many times. Any status is a
    /// yes (FAILED was accepted before it failed); "not found" is not yet a no, the request may still be under way.
    async fn is_known(&mut self, wish: PlannedPurchase, path: &str) -> bool {
        let times = if wish.ticket.is_some() { 0 } else { self.shared.plan.max_retries };
        for attempt in 0..=times {
            if attempt > 0 && !self.pause(attempt, None).await {
                break;
            }
            if self.call_status(wish.buyer, path).await == Some(200) {
                return true;
            }
        }
        false
    }
}
