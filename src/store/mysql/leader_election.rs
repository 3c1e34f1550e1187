//! Leader election: one process at a time reconciles, one expires orders, one sends webhooks, and one warms sales up.
//!
//! Input: a lock of the database. Output: whether this process leads. A task of its own renews the lease, so that an audit may
//! take longer than the lease. The other processes try to take the lock every two seconds. A leader that crashes is replaced
//! within that time; a leader that hangs or is cut off is replaced when its lease ends, and stops before its next sale. For some
//! seconds two processes may lead, never for longer than a lease; on Galera, whose nodes have locks of their own, for as long as
//! the processes use different nodes. Every repair is guarded by its own key, so that is only double work (window 93).

use super::leader::{self, Holder, Leadership};
use super::{Db, DbError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What is led: each has its own lock, and perhaps its own leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LedWork {
    /// Audits and repairs.
    Reconcile,
    /// Overdue orders.
    Expiry,
    /// Deliveries of webhooks.
    Webhooks,
    /// Automatic warm-ups.
    WarmUp,
}

impl LedWork {
    /// The lock's name.
    const fn lock(self) -> &'static str {
        match self {
            Self::Reconcile => "reconcile",
            Self::Expiry => "expiry",
            Self::Webhooks => "webhooks",
            Self::WarmUp => "warm-up",
        }
    }

    /// Whether this process leads, for operators. The alerts use the other gauges of the work only where this one is 1.
    fn set_gauge(self, leads: bool) {
        let leads = if leads { 1.0 } else { 0.0 };
        match self {
            Self::Reconcile => metrics::gauge!("seckill_p5_reconcile_leads").set(leads),
            Self::Expiry => metrics::gauge!("seckill_p6_fulfil_leads").set(leads),
            Self::Webhooks => metrics::gauge!("seckill_p6_webhook_leads").set(leads),
            Self::WarmUp => metrics::gauge!("seckill_p1_entry_warm_up_leads").set(leads),
        }
    }
}

/// Validity of the lease from the moment of this process' request. The server counts from its answer, so a little longer.
const LEASE: Duration = Duration::from_secs(leader::LEASE_S as u64);
/// A third of the lease, so that one late renewal does not cost it.
const RENEW: Duration = Duration::from_secs(leader::LEASE_S as u64 / 3);
/// Pause between two tries of a process that does not lead.
const TRY: Duration = Duration::from_secs(2);

/// The process that leads at the moment, as the database has it; for operators.
pub(crate) async fn leader(db: &Db) -> Result<Option<Holder>, DbError> {
    leader::holder(db, LedWork::Reconcile.lock()).await
}

/// Leadership with the task that renews it. Dropping it ends the task, which closes the lock's connection.
struct HeldLeadership {
    /// When the last successful renewal was sent; none: the lease is lost.
    renewed_at: watch::Receiver<Option<Instant>>,
    renewer: JoinHandle<()>,
}

impl HeldLeadership {
    fn start(work: LedWork, leadership: Leadership, since: Instant) -> Self {
        let (renewals, renewed_at) = watch::channel(Some(since));
        Self { renewed_at, renewer: tokio::spawn(renew(work, leadership, renewals)) }
    }

    /// Also false when the task could not renew the lease in time, for whatever reason.
    fn holds(&self) -> bool {
        self.renewed_at.borrow().is_some_and(|at| at.elapsed() < LEASE)
    }
}

impl Drop for HeldLeadership {
    fn drop(&mut self) {
        self.renewer.abort();
    }
}

/// Renews the lease until it is lost or no longer needed. Each renewal has a deadline of its own.
async fn renew(work: LedWork, mut leadership: Leadership, renewals: watch::Sender<Option<Instant>>) {
    loop {
        tokio::time::sleep(RENEW).await;
        let asked_at = Instant::now();
        let holds = matches!(leadership.holds().await, Ok(true));
        if !holds {
            // At once, not when this process tries again: until then perhaps no process leads.
            work.set_gauge(false);
        }
        if renewals.send(holds.then_some(asked_at)).is_err() || !holds {
            return;
        }
    }
}

/// The election as this process sees it.
pub(crate) struct LeaderElection {
    db: Db,
    work: LedWork,
    held: Option<HeldLeadership>,
    try_at: Option<Instant>,
    seen: Arc<AtomicBool>,
}

impl LeaderElection {
    /// An election in which this process has not stood yet.
    pub(crate) fn new(db: Db, work: LedWork) -> Self {
        Self { db, work, held: None, try_at: None, seen: Arc::default() }
    }

    /// Whether this process led when it ran last, for work beside: it may do no harm when two processes do it.
    pub(crate) fn seen(&self) -> Arc<AtomicBool> {
        self.seen.clone()
    }

    /// Whether this process still leads, without I/O: between two sales of a round.
    pub(crate) fn leads(&self) -> bool {
        self.held.as_ref().is_some_and(HeldLeadership::holds)
    }

    /// Whether this process leads; tries to become the leader if there is none. Between two rounds. On an error this process
    /// does not lead.
    pub(crate) async fn run(&mut self) -> Result<bool, DbError> {
        let leads = self.stand().await;
        self.seen.store(matches!(leads, Ok(true)), Ordering::Relaxed);
        leads
    }

    async fn stand(&mut self) -> Result<bool, DbError> {
        if self.leads() {
            return Ok(true);
        }
        if self.held.take().is_some() {
            tracing::warn!(work = ?self.work, "leadership lost, its connection is gone");
            self.try_at = None;
            self.work.set_gauge(false);
        }
        if self.try_at.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.try_at = Some(Instant::now() + TRY);
        // First on a connection of the pool: of many processes all but one would open a connection for nothing, again and again.
        if !leader::is_free(&self.db, self.work.lock()).await? {
            self.work.set_gauge(false);
            return Ok(false);
        }
        let since = Instant::now();
        let got = leader::try_lead(&self.db, self.work.lock()).await?;
        self.held = got.map(|leadership| HeldLeadership::start(self.work, leadership, since));
        if self.held.is_some() {
            tracing::info!(work = ?self.work, "this process leads");
        }
        self.work.set_gauge(self.held.is_some());
        Ok(self.held.is_some())
    }

    /// Gives leadership up: the others try before this process does again.
    pub(crate) fn resign(&mut self) {
        if self.held.take().is_some() {
            tracing::info!(work = ?self.work, "this process leads no longer");
            self.try_at = Some(Instant::now() + TRY);
            self.work.set_gauge(false);
            self.seen.store(false, Ordering::Relaxed);
        }
    }
}
