//! The sweep of overdue orders (L2): one process at a time expires them in batches, and gives their units to Redis.
//!
//! Input: UNPAID orders whose enforced deadline has passed, by the clock of the database, sale by sale along an
//! index. Output: EXPIRED orders, a grant a batch, the units on sale again. One leader saves work; two do no harm, because the
//! condition of the UPDATE decides. A batch that fails for something in it is halved down to the order that it is about. A sale that is
//! left out is tried in no way: by turn, in halves, or order by order. A crash leaves a batch written or not; a grant that Redis was
//! not given is found by the next leader, and by P5.

use super::context::FulfilContext;
use super::halves::{Halves, OverdueBatch, Parted};
use super::overdue::OverdueWalk;
use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::states::{P6Fulfil, State};
use crate::faults::left_out;
use crate::runtime::Worker;
use crate::store::mysql::DbError;
use crate::store::mysql::leader_election::LeaderElection;
use crate::telemetry::count;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// A sale whose orders could not expire is tried again after this time.
const LEFT_OUT: Duration = Duration::from_secs(10);
/// A sale is tried again after this time when a row of it was waited for in vain: as long as such a wait may take, so that the others
/// have at least half of the time.
const AFTER_LOCK_WAIT: Duration = Duration::from_secs(3);
/// A sale that is being rebuilt is tried again after this time.
const WHILE_FROZEN: Duration = Duration::from_secs(1);
/// Turns that one search takes at most until one has orders.
const TURNS_MAX: usize = 20;
/// Between two searches when one found nothing and other sales have their turn.
const BETWEEN_SEARCHES: Duration = Duration::from_millis(50);

/// The sweep of one process.
pub struct Expiry {
    context: FulfilContext,
    settings: config::P6Fulfil,
    election: LeaderElection,
    next_at: Instant,
    measure_at: Instant,
    /// Whether the grants that an earlier leader left were searched.
    begun: bool,
    /// Sales with units that Redis was not given yet.
    ungiven: BTreeSet<SaleId>,
    walk: OverdueWalk,
    halves: Halves,
}

impl Expiry {
    /// A sweep that waits to be the leader.
    pub(crate) fn new(context: FulfilContext, election: LeaderElection, settings: config::P6Fulfil) -> Self {
        let (ungiven, walk, halves) = (BTreeSet::new(), OverdueWalk::new(), Halves::default());
        let now = Instant::now();
        Self { context, settings, election, next_at: now, measure_at: now, begun: false, ungiven, walk, halves }
    }

    /// Gives what is open; what cannot be given now stays in the list.
    async fn give(&mut self) {
        for sale_id in std::mem::take(&mut self.ungiven) {
            if !self.context.give(&sale_id).await {
                self.ungiven.insert(sale_id);
            }
        }
    }

    /// Expires one batch: what is left of one that failed, or of the first sale in turn that has one. Returns how many orders it had.
    async fn sweep(&mut self) -> Result<usize, DbError> {
        let now = Instant::now();
        if let Some(half) = self.halves.next(now, |sale| self.walk.is_left_out(sale, now)) {
            if self.is_frozen(&half.sale_id).await {
                self.halves.put_back(half, now);
            } else {
                let expired = self.expire(half).await?;
                // One that expires nothing takes no other sale's turn.
                if expired > 0 {
                    return Ok(expired);
                }
            }
        }
        self.walk.find_sales(&self.context.orders, Duration::from_millis(self.settings.interval_ms)).await?;
        for _ in 0..TURNS_MAX {
            let Some(turn) = self.walk.next_turn() else { break };
            // What waits of it is among its next orders, and would be halved once more, and again.
            if self.halves.has_waiting_of(&turn.sale_id) || self.is_frozen(&turn.sale_id).await {
                continue;
            }
            let sale_id = turn.sale_id.clone();
            let orders = self.walk.page(&self.context.orders, turn, self.settings.group_max).await?;
            let orders = self.halves.without_aside(orders);
            if orders.is_empty() {
                continue;
            }
            let expired = self.expire(OverdueBatch { sale_id: sale_id.clone(), orders }).await;
            if expired.is_err() {
                self.walk.begin_again(&sale_id);
            }
            return expired;
        }
        Ok(0)
    }

    /// Whether the sale is being rebuilt: then it is left out, in whatever way its orders would be tried.
    async fn is_frozen(&mut self, sale_id: &SaleId) -> bool {
        let is_frozen = self.context.is_frozen(sale_id).await;
        if is_frozen {
            // Without room for it, it is found again with the next search.
            self.walk.leave_out(sale_id.clone(), WHILE_FROZEN);
        }
        is_frozen
    }

    async fn expire(&mut self, tried: OverdueBatch) -> Result<usize, DbError> {
        if !self.election.leads() {
            return Ok(0);
        }
        let sale_id = tried.sale_id.clone();
        match self.context.orders.expire(&sale_id, tried.orders.clone()).await {
            Ok(expired) => {
                self.halves.done(&tried);
                let Some(batch) = expired else { return Ok(0) };
                count(State::P6(P6Fulfil::Expired), batch.orders);
                tracing::info!(
                    phase = "p6_fulfil", sale = %sale_id, orders = batch.orders, units = batch.units, grant = batch.grant_id,
                    "orders expired unpaid, their units are on sale again"
                );
                self.ungiven.insert(sale_id);
                Ok(batch.orders)
            }
            Err(error) if error.is_outage() => Err(error),
            Err(error) if !is_of_the_sale(&error) && self.part(tried, &error) => {
                if error.is_lock_wait() {
                    self.walk.leave_out(sale_id, AFTER_LOCK_WAIT);
                }
                Ok(0)
            }
            Err(error) => {
                tracing::warn!(phase = "p6_fulfil", sale = %sale_id, %error, "its orders cannot expire now");
                self.halves.forget_waiting(&sale_id);
                if self.walk.leave_out(sale_id, LEFT_OUT) { Ok(0) } else { Err(error) }
            }
        }
    }

    /// Whether the batch, or the order that it is, was made smaller or set aside.
    fn part(&mut self, tried: OverdueBatch, error: &DbError) -> bool {
        match self.halves.failed(tried, error, Instant::now()) {
            Parted::Halved | Parted::SetAside => true,
            Parted::NoRoom => false,
        }
    }

    /// Whether there is more to try than what was found last.
    fn has_more(&self) -> bool {
        self.walk.has_turns() || self.halves.has_waiting()
    }

    /// Figures for operators; once an interval, also while there is much to do.
    async fn measure(&mut self) -> Result<(), DbError> {
        let now = Instant::now();
        if now < self.measure_at {
            return Ok(());
        }
        self.measure_at = now + Duration::from_millis(self.settings.interval_ms);
        metrics::gauge!("seckill_p6_fulfil_overdue_seconds").set(self.walk.overdue_ms as f64 / 1000.0);
        metrics::gauge!("seckill_p6_fulfil_set_aside_count").set(self.halves.aside_count() as f64);
        let refunds = self.context.orders.refunds_needed_count().await?;
        metrics::gauge!("seckill_p6_fulfil_refunds_needed_count").set(refunds as f64);
        Ok(())
    }
}

/// Whether the error is about the sale, whichever of its orders are tried.
const fn is_of_the_sale(error: &DbError) -> bool {
    match error {
        DbError::SaleLocked(_) | DbError::UnknownSale(_) | DbError::Deadlock => true,
        DbError::Duplicate(_)
        | DbError::LockWait
        | DbError::LeftUntried
        | DbError::Unavailable(_)
        | DbError::Timeout(_)
        | DbError::WrongNode(_)
        | DbError::Damaged(_)
        | DbError::Other(_) => false,
    }
}

impl Worker for Expiry {
    fn name(&self) -> &'static str {
        "p6_fulfil"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.election.run().await.map_err(Fault::back_off)? {
            // Who leads again begins at the front.
            (self.begun, self.walk, self.halves) = (false, OverdueWalk::new(), Halves::default());
            return Ok(Progress::Idle);
        }
        let started_at = Instant::now();
        if started_at < self.next_at {
            return Ok(Progress::Idle);
        }
        if !self.begun && !left_out!(OthersGive) {
            let open = self.context.rows.grants.sales_with_unapplied().await.map_err(Fault::back_off)?;
            self.ungiven.extend(open);
        }
        let swept = self.sweep().await;
        // Whatever became of the rest of it, and also of a batch whose commit is unknown.
        self.begun = swept.is_ok();
        self.give().await;
        let expired = swept.map_err(Fault::back_off)?;
        if let Err(error) = self.measure().await {
            tracing::warn!(phase = "p6_fulfil", %error, "overdue orders and refunds could not be counted");
        }
        if expired == 0 {
            let interval = Duration::from_millis(self.settings.interval_ms);
            self.next_at = started_at + if self.has_more() { BETWEEN_SEARCHES.min(interval) } else { interval };
            return Ok(Progress::Idle);
        }
        // So that as many a second expire as may.
        self.next_at = started_at + Duration::from_secs_f64(expired as f64 / f64::from(self.settings.rate_per_s));
        Ok(Progress::Moved(expired))
    }
}
