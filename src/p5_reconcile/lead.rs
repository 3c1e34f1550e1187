//! Who reconciles: one process at a time, for as long as it lives and moves.
//!
//! The leader keeps a lock of the database and renews its lease; the others ask every two seconds. A leader that dies is
//! followed within that time, one that stands still or is cut off once its lease is over. For some seconds two may lead:
//! every repair is guarded by its own key, so that is only double work (window 93).

use crate::store::mysql::leader::{self, Holder, Leadership};
use crate::store::mysql::{Db, DbError};
use std::time::{Duration, Instant};

/// The lock's name.
const NAME: &str = "reconcile";
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

/// This process' part in the election.
#[derive(Default)]
pub(super) struct Lead {
    held: Option<(Leadership, Instant)>,
    try_at: Option<Instant>,
}

impl Lead {
    /// Whether this process leads; tries to if nobody does. Call it at least every few seconds to keep the lease.
    ///
    /// # Errors
    /// [`DbError`] when the database cannot be asked; this process does not lead then.
    pub async fn is_ours(&mut self, db: &Db) -> Result<bool, DbError> {
        if let Some((leadership, renewed_at)) = &mut self.held {
            if renewed_at.elapsed() < RENEW {
                return Ok(true);
            }
            let holds = leadership.holds().await;
            if matches!(holds, Ok(true)) {
                *renewed_at = Instant::now();
                return Ok(true);
            }
            tracing::warn!(phase = "p5_reconcile", "leadership lost, its connection is gone");
            self.held = None;
            self.try_at = None;
            // Now, not when the database answers again: until then nobody may lead at all.
            told(false);
        }
        if self.try_at.is_some_and(|at| Instant::now() < at) {
            return Ok(false);
        }
        self.try_at = Some(Instant::now() + TRY);
        self.held = leader::try_lead(db, NAME).await?.map(|leadership| (leadership, Instant::now()));
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
