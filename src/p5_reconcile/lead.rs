//! Who reconciles: one process at a time, for as long as it lives and moves.
//!
//! The leader keeps a lock of the database. A task of its own renews the lease, so that an audit may take as long as it takes;
//! the others ask every two seconds. A leader that dies is followed within that time, one that stands still or is cut off once
//! its lease is over, and it stops before its next sale. For some seconds two may lead, never for longer than a lease: every
//! repair is guarded by its own key, so that is only double work (window 93).

use crate::store::mysql::leader::{self, Holder, Leadership};
use crate::store::mysql::{Db, DbError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The lock's name.
const NAME: &str = "reconcile";
/// How long the lease holds after it was asked for: the server counts from its answer, so a little longer.
const LEASE: Duration = Duration::from_secs(leader::LEASE_S as u64);
/// A third of the lease, so that one late renewal does not cost it.
const RENEW: Duration = Duration::from_secs(leader::LEASE_S as u64 / 3);
/// Pause between two tries of a process that does not lead.
const TRY: Duration = Duration::from_secs(2);

/// Who leads at the moment, as the database says; for operators.
///
/// # Errors
/// [`DbError`] when the database cannot be asked.
pub async fn leader(db: &Db) -> Result<Option<Holder>, DbError> {
    leader::holder(db, NAME).await
}

/// Leadership with the task that renews it. Dropping it ends the task, which closes the lock's connection.
struct Held {
    /// When the lease was last asked for with success; none: it is lost.
    renewed_at: watch::Receiver<Option<Instant>>,
    keeper: JoinHandle<()>,
}

impl Held {
    fn keep(leadership: Leadership, since: Instant) -> Self {
        let (tell, renewed_at) = watch::channel(Some(since));
        Self { renewed_at, keeper: tokio::spawn(renew(leadership, tell)) }
    }

    /// Also false when the task could not renew it in time, whatever keeps it.
    fn holds(&self) -> bool {
        self.renewed_at.borrow().is_some_and(|at| at.elapsed() < LEASE)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

/// Renews the lease until it is lost or nobody wants it any more. Asking has a deadline of its own.
async fn renew(mut leadership: Leadership, tell: watch::Sender<Option<Instant>>) {
    loop {
        tokio::time::sleep(RENEW).await;
        let asked_at = Instant::now();
        let holds = matches!(leadership.holds().await, Ok(true));
        if !holds {
            // Now, not when this process tries again: until then nobody may lead at all.
            told(false);
        }
        if tell.send(holds.then_some(asked_at)).is_err() || !holds {
            return;
        }
    }
}

/// This process' part in the election.
#[derive(Default)]
pub(super) struct Lead {
    held: Option<Held>,
    try_at: Option<Instant>,
}

impl Lead {
    /// Whether this process still leads. Asks nobody: between two sales of a round.
    pub fn holds(&self) -> bool {
        self.held.as_ref().is_some_and(Held::holds)
    }

    /// Whether this process leads; tries to if nobody does. Between two rounds.
    ///
    /// # Errors
    /// [`DbError`] when the database cannot be asked; this process does not lead then.
    pub async fn is_ours(&mut self, db: &Db) -> Result<bool, DbError> {
        if self.holds() {
            return Ok(true);
        }
        if self.held.take().is_some() {
            tracing::warn!(phase = "p5_reconcile", "leadership lost, its connection is gone");
            self.try_at = None;
            told(false);
        }
        if self.try_at.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.try_at = Some(Instant::now() + TRY);
        let since = Instant::now();
        self.held = leader::try_lead(db, NAME).await?.map(|leadership| Held::keep(leadership, since));
        if self.held.is_some() {
            tracing::info!(phase = "p5_reconcile", "this process leads");
        }
        told(self.held.is_some());
        Ok(self.held.is_some())
    }
}

/// Whether this process leads, for operators. The alerts believe P5's other gauges only where this one is 1.
fn told(leads: bool) {
    metrics::gauge!("seckill_p5_reconcile_leads").set(if leads { 1.0 } else { 0.0 });
}
