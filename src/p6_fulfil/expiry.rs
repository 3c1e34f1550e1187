//! The sweep of overdue orders (L2): one process at a time expires them in batches, and gives their units to Redis.
//!
//! Input: UNPAID orders whose enforced deadline has passed, by the clock of the database, along an index. Output: EXPIRED orders, a
//! grant a batch, the units on sale again. One leader saves work; two do no harm, because the condition of the UPDATE decides. A
//! crash leaves a batch written or not; a grant that Redis was not given is found by the next leader, and by P5.
//!
//! A sale whose orders cannot change now (its row is locked, it is being removed or rebuilt) must not hold up the others: it is left out for
//! a while.

use super::context::FulfilContext;
use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::states::{P6Fulfil, State};
use crate::runtime::Worker;
use crate::store::mysql::leader_election::{LeaderElection, LedWork};
use crate::store::mysql::{DbError, grants, order_life};
use crate::telemetry::count;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A sale whose orders could not expire is tried again after this time.
const LEFT_OUT: Duration = Duration::from_secs(10);
/// A sale that is being rebuilt is looked at again after this time.
const WHILE_FROZEN: Duration = Duration::from_secs(1);
/// Most sales left out at a time; then a fault of the database is everybody's.
const LEFT_OUT_MAX: usize = 100;

/// The sweep of one process.
pub struct Expiry {
    context: FulfilContext,
    settings: config::P6Fulfil,
    election: LeaderElection,
    next_at: Instant,
    /// Whether the grants that an earlier leader left were looked for.
    begun: bool,
    /// Sales with units that Redis was not given yet.
    ungiven: BTreeSet<SaleId>,
    left_out: BTreeMap<SaleId, Instant>,
}

impl Expiry {
    /// A sweep that waits to be the leader.
    pub(crate) fn new(context: FulfilContext, settings: config::P6Fulfil) -> Self {
        let election = LeaderElection::new(LedWork::Expiry);
        let (ungiven, left_out) = (BTreeSet::new(), BTreeMap::new());
        Self { context, settings, election, next_at: Instant::now(), begun: false, ungiven, left_out }
    }

    /// Gives what is open; what cannot be given now stays in the list.
    async fn give(&mut self) {
        for sale_id in std::mem::take(&mut self.ungiven) {
            if !self.context.give(&sale_id).await {
                self.ungiven.insert(sale_id);
            }
        }
    }

    /// Expires one batch. Returns how many orders it had.
    async fn sweep(&mut self) -> Result<usize, DbError> {
        let now = Instant::now();
        self.left_out.retain(|_, until| *until > now);
        let but_of: Vec<SaleId> = self.left_out.keys().cloned().collect();
        let overdue = order_life::overdue(&self.context.db, &but_of, self.settings.group_max).await?;
        let mut by_sale: BTreeMap<SaleId, Vec<RequestId>> = BTreeMap::new();
        for order in overdue {
            by_sale.entry(order.sale_id).or_default().push(order.request_id);
        }
        let mut expired = 0;
        for (sale_id, request_ids) in by_sale {
            if self.context.is_frozen(&sale_id).await {
                self.left_out.insert(sale_id, Instant::now() + WHILE_FROZEN);
                continue;
            }
            match order_life::expire(&self.context.db, &sale_id, &request_ids).await {
                Ok(None) => {}
                Ok(Some(batch)) => {
                    expired += batch.orders;
                    count(State::P6(P6Fulfil::Expired), batch.orders);
                    tracing::info!(
                        phase = "p6_fulfil", sale = %sale_id, orders = batch.orders, units = batch.units, grant = batch.grant_id,
                        "orders expired unpaid, their units are on sale again"
                    );
                    self.ungiven.insert(sale_id);
                }
                Err(error) if error.is_outage() || self.left_out.len() >= LEFT_OUT_MAX => return Err(error),
                Err(error) => {
                    tracing::warn!(phase = "p6_fulfil", sale = %sale_id, %error, "its orders cannot expire now");
                    self.left_out.insert(sale_id, Instant::now() + LEFT_OUT);
                }
            }
        }
        Ok(expired)
    }

    /// Figures for operators; once an interval.
    async fn measure(&self) -> Result<(), DbError> {
        let overdue_ms = order_life::overdue_age_ms(&self.context.db).await?;
        metrics::gauge!("seckill_p6_fulfil_overdue_seconds").set(overdue_ms as f64 / 1000.0);
        let (_, refunds) = order_life::refunds_needed(&self.context.db, None).await?;
        metrics::gauge!("seckill_p6_fulfil_refunds_needed_count").set(refunds as f64);
        Ok(())
    }
}

impl Worker for Expiry {
    fn name(&self) -> &'static str {
        "p6_fulfil"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.election.run(&self.context.db).await.map_err(Fault::back_off)? {
            self.begun = false;
            return Ok(Progress::Idle);
        }
        let started_at = Instant::now();
        if started_at < self.next_at {
            return Ok(Progress::Idle);
        }
        if !self.begun {
            let open = grants::sales_with_unapplied(&self.context.db).await.map_err(Fault::back_off)?;
            self.ungiven.extend(open);
            self.begun = true;
        }
        let expired = self.sweep().await.map_err(Fault::back_off)?;
        self.give().await;
        if expired == 0 {
            self.measure().await.map_err(Fault::back_off)?;
            self.next_at = started_at + Duration::from_millis(self.settings.interval_ms);
            return Ok(Progress::Idle);
        }
        // So that as many a second expire as may.
        self.next_at = started_at + Duration::from_secs_f64(expired as f64 / f64::from(self.settings.rate_per_s));
        Ok(Progress::Moved(expired))
    }
}
