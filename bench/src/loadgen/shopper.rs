//! One connection's buyers, one after the other, each as patient as a real client.
//!
//! Input: purchases of the run, taken one at a time. Output: a tally. A buyer repeats after 429 and 503 as `Retry-After`
//! says. After 504, another 5xx or a cut answer it asks the status URL; unknown there, it repeats with the same token. Without
//! a token it must not repeat (it could buy twice), so it only goes on asking, or gives up if it never heard a request id.

use super::calls::Heard;
use super::http::Connection;
use super::latencies::Batch;
use super::report::{CrowdReport, Told, Verdict, is_final_no};
use super::shared::Shared;
use seckill::domain::ids::RequestId;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;

/// First wait before a repeat that was given no `Retry-After`, milliseconds; doubles each time up to the plan's bound.
const BACKOFF_MS: u64 = 20;

/// One purchase of one buyer.
#[derive(Clone, Copy)]
struct Wish {
    /// Index into the run's buyers.
    buyer: u64,
    /// The request id of its purchase token, which is in [`Shopper::key`].
    ticket: Option<RequestId>,
    /// When it should have been sent, in a run with a rate.
    due: Option<Instant>,
}

/// One connection with its tally.
pub(super) struct Shopper {
    pub(super) shared: Arc<Shared>,
    pub(super) connection: Connection,
    pub(super) outbox: String,
    pub(super) key: String,
    /// The buyer's ticket of the waiting room; empty without one.
    pub(super) place: String,
    pub(super) seen: CrowdReport,
    pub(super) latencies: Batch,
    /// Whether the purchase under way is one that is measured.
    pub(super) measured: bool,
}

impl Shopper {
    pub fn new(shared: Arc<Shared>, connection: Connection, seen: CrowdReport) -> Self {
        let (key, place) = (String::new(), String::new());
        let (outbox, latencies) = (String::with_capacity(1024), Batch::new());
        Self { shared, connection, outbox, key, place, seen, latencies, measured: true }
    }

    /// Buys until nothing is left to buy.
    pub async fn shop(mut self) -> CrowdReport {
        while let Some((index, due)) = self.shared.next().await {
            let plan = &self.shared.plan;
            let buyer = index % plan.buyers;
            let (duplicate, other) = (plan.duplicate_percent, plan.other_retry_percent);
            let duplicate = self.shared.chosen(index, 0, duplicate);
            let other = self.shared.chosen(index, 1, other);
            self.measured = index >= plan.unmeasured;
            self.purchase(Wish { buyer, ticket: None, due }, duplicate).await;
            if other {
                self.purchase(Wish { buyer, ticket: None, due: None }, false).await;
            }
            self.shared.finished.fetch_add(1, Relaxed);
        }
        self.latencies.end(&self.shared.latencies);
        self.seen.connected = self.connection.made();
        self.seen
    }

    async fn purchase(&mut self, mut wish: Wish, duplicate: bool) {
        let keep = self.shared.plan.keep_history;
        self.seen.purchases += 1;
        if self.shared.plan.room
            && let Err(verdict) = self.wait_in_room(wish.buyer).await
        {
            return self.seen.tell(self.told(wish, verdict), keep);
        }
        if self.shared.plan.tokens {
            match self.get_ticket(wish.buyer).await {
                Ok(id) => wish.ticket = Some(id),
                Err(verdict) => return self.seen.tell(self.told(wish, verdict), keep),
            }
        }
        let told = self.insist(wish).await;
        self.seen.tell(told, keep);
        match told.verdict {
            Verdict::Accepted => {
                self.shared.accepted.fetch_add(1, Relaxed);
            }
            Verdict::Refused { .. } => {}
            Verdict::Unknown | Verdict::NotSent => return,
        }
        if duplicate {
            let again = self.insist(Wish { due: None, ..wish }).await;
            self.seen.replayed(&told, again, keep);
        }
    }

    fn told(&self, wish: Wish, verdict: Verdict) -> Told {
        let plan = &self.shared.plan;
        let user = plan.first_buyer + wish.buyer;
        Told { user, request_id: wish.ticket, quantity: plan.quantity, verdict, doubted: false }
    }

    /// A purchase token into `self.key`. Asking twice does no harm, so every trouble is a reason to ask again.
    async fn get_ticket(&mut self, buyer: u64) -> Result<RequestId, Verdict> {
        let mut verdict = Verdict::NotSent;
        let mut wait_s = None;
        for attempt in 0..=self.shared.plan.max_retries {
            if attempt > 0 && !self.pause(attempt, wait_s.take()).await {
                break;
            }
            match self.call_token(buyer).await {
                Heard::Accepted(id) => return Ok(id),
                Heard::Refused(status) => return Err(Verdict::Refused { status }),
                Heard::Later { status, seconds } => {
                    verdict = Verdict::Refused { status };
                    wait_s = Some(seconds);
                }
                Heard::Unknown { .. } | Heard::NotSent => {}
            }
        }
        Err(verdict)
    }

    /// Sends one purchase until something definite is heard or patience ends.
    async fn insist(&mut self, wish: Wish) -> Told {
        let mut told = self.told(wish, Verdict::NotSent);
        let mut wait_s = None;
        for attempt in 0..=self.shared.plan.max_retries {
            if attempt > 0 && !self.pause(attempt, wait_s.take()).await {
                break;
            }
            let due = wish.due.filter(|_| attempt == 0);
            match self.call_order(wish.buyer, wish.ticket.is_some(), due).await {
                Heard::Accepted(id) => {
                    return Told { request_id: Some(id), verdict: Verdict::Accepted, ..told };
                }
                Heard::Refused(status) if told.doubted && !is_final_no(status) => return told,
                Heard::Refused(status) => return Told { verdict: Verdict::Refused { status }, ..told },
                Heard::Later { status, seconds } => {
                    wait_s = Some(seconds);
                    // "Later" says nothing about an earlier try of which nobody knows what became.
                    if !told.doubted {
                        told.verdict = Verdict::Refused { status };
                    }
                }
                Heard::NotSent => {}
                Heard::Unknown { id, path } => {
                    self.seen.unknown += 1;
                    told =
                        Told { request_id: told.request_id.or(id), verdict: Verdict::Unknown, doubted: true, ..told };
                    let Some(id) = told.request_id else { return told };
                    let path = path.unwrap_or_else(|| self.shared.forms.status_path(id));
                    if self.is_known(wish, &path).await {
                        return Told { verdict: Verdict::Accepted, ..told };
                    }
                    if wish.ticket.is_none() {
                        return told;
                    }
                }
            }
        }
        told
    }

    /// Asks whether a request was accepted: once for whoever can repeat it, patiently for whoever cannot. Any status is a
    /// yes (FAILED was accepted before it failed); "not found" is not yet a no, the request may still be under way.
    async fn is_known(&mut self, wish: Wish, path: &str) -> bool {
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

    /// Waits before repeat number `attempt`; `false` when the run is stopped.
    pub(super) async fn pause(&self, attempt: u32, wait_s: Option<u64>) -> bool {
        let plan = &self.shared.plan;
        let backoff_ms = BACKOFF_MS.saturating_mul(1 << attempt.saturating_sub(1).min(16));
        let wait_ms = wait_s.map_or(backoff_ms, |seconds| seconds.saturating_mul(1000)).min(plan.retry_wait_max_ms);
        plan.stop.sleep(Duration::from_millis(wait_ms)).await;
        !plan.stop.is_stopped()
    }
}
