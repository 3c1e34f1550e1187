//! A buyer's own entry: where it is in the line, and the request of its offer.
//!
//! Input: a buyer and a sale. Output: the entry with its rank, as far as that is public, and how many are in front. A crash leaves nothing.

use super::Lines;
use crate::domain::ids::{EntryId, RequestId, SaleId, UserId};
use crate::domain::line::{EntryState, LineKind};
use crate::http::problem::{Kind, Problem};
use crate::lines::rows::Entry;

/// An entry as its buyer sees it.
pub(crate) struct MyEntry {
    pub(crate) id: EntryId,
    pub(crate) quantity: u32,
    pub(crate) state: EntryState,
    /// Unix milliseconds.
    pub(crate) entered_at_ms: i64,
    /// From 1; of a raffle once it is drawn.
    pub(crate) rank: Option<u32>,
    /// Entries in front that may still get units before it, with a rank; of a raffle as of a second ago at most.
    pub(crate) before: Option<u32>,
    /// The request of its offer, once that is made or being made.
    pub(crate) request_id: Option<RequestId>,
    /// Why it lapsed.
    pub(crate) lapse_reason: Option<String>,
    pub(crate) receipt: Option<String>,
}

impl Lines {
    /// The entry of this buyer, with its rank once the line is drawn.
    ///
    /// # Errors
    /// The problem to answer with; 404 when the buyer has none.
    pub(crate) async fn mine(&self, user: &UserId, sale: &SaleId) -> Result<MyEntry, Problem> {
        let line = self.draws.line(sale).await?;
        self.buyers.limits.take_of_buyer(user).await?;
        let entry = self.call(self.rows.entry_of(sale, user)).await?.ok_or(Problem::from(Kind::EntryNotFound))?;
        let (rank, before) = match (line.kind, entry.rank) {
            (LineKind::Waitlist, rank) if entry.state == EntryState::Waiting => (rank, self.before(sale, rank).await),
            (LineKind::Waitlist, rank) => (rank, rank.map(|_| 0)),
            (LineKind::Raffle, None) if line.state.is_drawn() => {
                let rank = self.draws.ranks(&line).await?.of(entry.id.get());
                (rank, rank.map(|rank| (rank - 1).saturating_sub(line.reached_rank)))
            }
            (LineKind::Raffle, rank) => (rank, rank.map(|_| 0)),
        };
        let receipt = self.receipts.sign((entry.id, sale), user, entry.quantity, entry.entered_at_ms);
        let Entry { id, quantity, state, entered_at_ms, request_id, lapse_reason, .. } = entry;
        Ok(MyEntry { id, quantity, state, entered_at_ms, rank, before, request_id, lapse_reason, receipt })
    }

    /// How many wait in front of a rank of a waiting list; none where it cannot be read: the entry is what counts.
    pub(super) async fn before(&self, sale: &SaleId, rank: Option<u32>) -> Option<u32> {
        self.call(self.rows.waiting_before(sale, rank?)).await.ok()
    }
}
