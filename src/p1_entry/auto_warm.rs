//! Automatic warm-ups (A7): drafts ahead of their start, and warm-ups that a crash left unfinished.
//!
//! Input: the drafts that are due, and the sales that sell. Output: calls of the [`SaleControl`], all of which can be repeated; a
//! crash leaves nothing behind. Of all api processes one does it, so that sales in which nothing happens cost the same whatever
//! number of processes there is; two that do it for a while do no harm. Another one follows a leader that died, and one that cannot
//! reach a server.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::sale::Sale;
use crate::runtime::{Worker, now_ms};
use crate::sales::{SaleControl, SaleControlError};
use crate::store::mysql::leader_election::LeaderElection;
use crate::store::redis::RedisFault;
use futures::{StreamExt, TryStreamExt};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Sales that are warmed already are checked this often; drafts that wait for their start every second.
const CHECK_EVERY: Duration = Duration::from_secs(10);
/// Sales that are checked at once.
const CHECKS_MAX: usize = 16;
/// A leader that could not do its work for this time lets another process try.
const RESIGN_AFTER: Duration = Duration::from_secs(5);

/// A sale is checked for this long after its end, milliseconds: an end that was moved to the next moment, by a process that died
/// before Redis had it, is followed by then.
const CHECKED_AFTER_END_MS: i64 = 60_000;

/// Warms drafts ahead of their start and finishes what a crash left between database and Redis. Part of the api role.
pub(crate) struct AutoWarm {
    sale_control: SaleControl,
    election: LeaderElection,
    /// How long before its start a draft is warmed, milliseconds; 0: never by itself.
    ahead_ms: u64,
    /// Sales whose trouble was logged: once, not every second.
    reported: HashSet<SaleId>,
    /// When warmed sales are checked next.
    check_at: Instant,
    /// Since when every step has failed.
    failing_since: Option<Instant>,
}

impl AutoWarm {
    /// Warms drafts `ahead_ms` before their start, 0: never by itself, while this process leads.
    #[must_use]
    pub(crate) fn new(sale_control: SaleControl, election: LeaderElection, ahead_ms: u64) -> Self {
        let (reported, check_at) = (HashSet::new(), Instant::now());
        Self { sale_control, election, ahead_ms, reported, check_at, failing_since: None }
    }

    async fn warm_due(&mut self) -> Result<(), Fault> {
        let mut due = Vec::new();
        if self.ahead_ms > 0 {
            let drafts = self.sale_control.rows.sales.drafts_due(self.ahead_ms).await;
            due.extend(drafts.map_err(Fault::back_off)?.into_iter().map(|sale| sale.sale_id));
        }
        let checks_all = Instant::now() >= self.check_at;
        if checks_all {
            due.extend(self.unfinished(now_ms() - CHECKED_AFTER_END_MS).await?);
        }
        for sale in due {
            self.warm(sale).await?;
            if !self.election.leads() {
                return Ok(());
            }
        }
        // Only now: what a server's outage has kept from being checked is checked when it is over.
        if checks_all {
            self.check_at = Instant::now() + CHECK_EVERY;
        }
        Ok(())
    }

    /// Sales that sell and of which Redis has something else than the database, or not every grant: two statements for all of
    /// them, and one command for each sale and shard.
    async fn unfinished(&self, ended_before_ms: i64) -> Result<HashSet<SaleId>, Fault> {
        let rows = &self.sale_control.rows;
        let selling = rows.sales.live_sales(ended_before_ms).await.map_err(Fault::back_off)?;
        let ungiven = rows.grants.sales_with_unapplied().await.map_err(Fault::back_off)?;
        let checks: Vec<_> = selling.into_iter().map(|sale| self.differing(sale)).collect();
        let checked = futures::stream::iter(checks).buffered(CHECKS_MAX).try_collect::<Vec<_>>().await?;
        Ok(checked.into_iter().flatten().chain(ungiven).collect())
    }

    /// The sale, if Redis has something else than its row.
    async fn differing(&self, sale: Sale) -> Result<Option<SaleId>, Fault> {
        match self.sale_control.is_aligned(&sale).await {
            Ok(is_aligned) => Ok((!is_aligned).then_some(sale.sale_id)),
            Err(fault) if is_outage(&fault) => Err(Fault::back_off(fault)),
            // Something about this sale: its warm-up says what.
            Err(_) => Ok(Some(sale.sale_id)),
        }
    }

    async fn warm(&mut self, sale: SaleId) -> Result<(), Fault> {
        match self.sale_control.warm(&sale).await {
            Ok(()) => {
                self.reported.remove(&sale);
            }
            Err(SaleControlError::Redis(fault)) if is_outage(&fault) => return Err(Fault::back_off(fault)),
            Err(SaleControlError::Database(error)) => return Err(Fault::back_off(error)),
            // Any other error concerns this sale only; the sales behind it must not wait.
            Err(error) if self.reported.insert(sale.clone()) => {
                tracing::error!(phase = "p1_entry", %sale, %error, "sale stays closed");
            }
            Err(_) => {}
        }
        Ok(())
    }
}

/// Whether other sales would fail as well.
const fn is_outage(fault: &RedisFault) -> bool {
    matches!(fault, RedisFault::NotSent(_) | RedisFault::Unknown(_) | RedisFault::NoScript)
}

impl Worker for AutoWarm {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.election.run().await.map_err(Fault::back_off)? {
            // Who leads again checks all of them at once.
            self.check_at = Instant::now();
            return Ok(Progress::Idle);
        }
        let done = self.warm_due().await;
        match &done {
            Ok(()) => self.failing_since = None,
            Err(_) if self.failing_since.get_or_insert_with(Instant::now).elapsed() < RESIGN_AFTER => {}
            // Perhaps only this process cannot reach a server.
            Err(_) => {
                self.failing_since = None;
                self.election.resign();
            }
        }
        done.map(|()| Progress::Idle)
    }
}
