//! Outcomes in the ledger: what buyers get when they ask, without the database being asked.
//!
//! Input: committed outcomes, by ledger. Output: ledger records that say CONFIRMED or FAILED. A shard of Redis that takes none
//! right now gets them later: its outcomes wait here, bounded, and are tried again. A crash loses what waits, as it loses what
//! was not marked yet; P5 marks those after its window, until which their buyers get QUEUED.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::SettledUpTo;
use crate::domain::outcome::Outcome;
use crate::store::redis::RequestLedger;
use futures::future::join_all;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Outcomes of one writer that wait for their ledgers, count: about 32 bytes each. Of more, the oldest are left to P5.
const WAITING_MAX: usize = 20_000;
/// Pause between two tries. Each may take as long as a command of Redis may.
const PAUSE: Duration = Duration::from_millis(500);

/// What is to be marked in one ledger: that of a sale on a shard.
pub(super) struct LedgerMarks {
    pub(super) sale_id: SaleId,
    pub(super) shard: u16,
    pub(super) outcomes: Vec<(RequestId, Outcome)>,
    /// The highest of their acceptance numbers.
    pub(super) newest: SettledUpTo,
}

/// Marks the ledgers for one writer.
pub(super) struct LedgerMarker {
    ledger: RequestLedger,
    waiting: VecDeque<LedgerMarks>,
    again_at: Instant,
}

impl LedgerMarker {
    pub(super) fn new(ledger: &RequestLedger) -> Self {
        Self { ledger: ledger.clone(), waiting: VecDeque::new(), again_at: Instant::now() }
    }

    /// Marks outcomes, and what waits when it is due. What fails, and what is behind it on its shard, waits.
    pub(super) async fn mark(&mut self, marks: Vec<LedgerMarks>) {
        let is_due = Instant::now() >= self.again_at;
        let (mut now, behind): (Vec<_>, Vec<_>) =
            marks.into_iter().partition(|new| is_due || !self.waiting.iter().any(|old| old.shard == new.shard));
        self.waiting.extend(behind);
        if is_due {
            now.extend(self.waiting.drain(..));
        }
        let ledger = &self.ledger;
        let tried = now.into_iter().map(|marks| async move {
            let LedgerMarks { sale_id, shard, outcomes, newest } = &marks;
            let error = ledger.mark_landed(sale_id, *shard, outcomes, Some(*newest)).await.err()?;
            let count = outcomes.len();
            tracing::debug!(phase = "p4_persist", sale = %sale_id, shard, %error, count, "ledger not marked");
            Some(marks)
        });
        let failed: Vec<LedgerMarks> = join_all(tried).await.into_iter().flatten().collect();
        if !failed.is_empty() {
            self.again_at = Instant::now() + PAUSE;
            self.waiting.extend(failed);
        }
        self.shed();
    }

    /// Tries again what waits, when it is due.
    pub(super) async fn mark_waiting(&mut self) {
        if !self.waiting.is_empty() {
            self.mark(Vec::new()).await;
        }
    }

    /// Keeps the bound.
    fn shed(&mut self) {
        let mut count: usize = self.waiting.iter().map(|marks| marks.outcomes.len()).sum();
        while count > WAITING_MAX
            && let Some(oldest) = self.waiting.pop_front()
        {
            count -= oldest.outcomes.len();
            let LedgerMarks { sale_id, shard, outcomes, .. } = oldest;
            let left = outcomes.len();
            tracing::warn!(phase = "p4_persist", sale = %sale_id, shard, left, "ledger not marked for long, left to P5");
        }
    }
}
