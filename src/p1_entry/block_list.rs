//! Buyers who may not buy (Q3), in the memory of each api process.
//!
//! Input: the blocks in the database, those that were changed each second. Output: [`BlockList::refusal`], which asks no server. A
//! block holds in every process within two seconds while the database answers. While it does not, no block can be added, and what is
//! known holds; a process that was started meanwhile knows none until the database is back. A crash leaves nothing.

use crate::buyers::rows::{Block, BlockRows, PAGE_MAX};
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::UserId;
use crate::domain::sale::Sale;
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::entitlement::{Entitlements, ShownFacts};
use crate::p1_entry::rate_limits::RateLimits;
use crate::p1_entry::reading_pace::{CHANGED_S, ReadingPace};
use crate::runtime::Worker;
use crate::store::mysql::DbError;
use crate::telemetry::count;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The database is asked for changes this often.
const REFRESH_EVERY: Duration = Duration::from_millis(700);

/// The blocked buyers. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct BlockList {
    /// Until when each is blocked, Unix milliseconds.
    until_ms: Arc<RwLock<HashMap<UserId, i64>>>,
    /// Nearly always none are: then a purchase takes no lock.
    any: Arc<AtomicBool>,
}

impl BlockList {
    /// Why this buyer may not buy at this time, if so.
    #[must_use]
    pub(crate) fn refusal(&self, buyer: &UserId, now_ms: i64) -> Option<Problem> {
        if !self.any.load(Ordering::Relaxed) {
            return None;
        }
        let until_ms = self.until_ms.read().unwrap_or_else(PoisonError::into_inner).get(buyer).copied();
        until_ms.filter(|until_ms| now_ms < *until_ms).map(|_| {
            count(State::P1(P1Entry::Blocked), 1);
            Kind::Blocked.into()
        })
    }

    /// The same of an account and the person behind it: a block is of an id, whichever of the two has it.
    #[must_use]
    pub(crate) fn refusal_of(&self, buyer: &UserId, person: Option<&UserId>, now_ms: i64) -> Option<Problem> {
        self.refusal(buyer, now_ms).or_else(|| self.refusal(person?, now_ms))
    }

    /// Takes over what was changed, or begins anew with all blocks.
    fn read(&self, blocks: &[Block], are_all: bool) {
        let mut until_ms = self.until_ms.write().unwrap_or_else(PoisonError::into_inner);
        if are_all {
            until_ms.clear();
        }
        for block in blocks {
            let Some(buyer) = block.buyer() else {
                tracing::warn!(phase = "p1_entry", "a row of blocked_buyers has a user_id that no buyer can have");
                continue;
            };
            match block.until_ms() {
                Some(until) => until_ms.insert(buyer, until),
                None => until_ms.remove(&buyer),
            };
        }
        self.any.store(!until_ms.is_empty(), Ordering::Relaxed);
        metrics::gauge!("seckill_p1_entry_blocked_buyers_count").set(until_ms.len() as f64);
    }
}

/// What is asked about each buyer who wants to buy: blocked, without what the sale needs, or too fast.
#[derive(Clone)]
pub(crate) struct BuyerChecks {
    pub(crate) blocks: BlockList,
    pub(crate) entitlements: Arc<Entitlements>,
    pub(crate) limits: Arc<RateLimits>,
}

impl BuyerChecks {
    /// As which person the buyer counts, where the sale limits by person.
    ///
    /// # Errors
    /// The buyer lacks what the sale needs, the person is not known, or the account or the person is blocked.
    pub(crate) fn entitled(
        &self,
        sale: &Sale,
        buyer: &UserId,
        shown: Option<&ShownFacts>,
        now_ms: i64,
    ) -> Result<Option<UserId>, Problem> {
        if let Some(problem) = self.entitlements.refusal(sale, buyer, shown) {
            return Err(problem);
        }
        let person = self.entitlements.person(sale, buyer, shown)?;
        self.blocks.refusal_of(buyer, person.as_ref(), now_ms).map_or(Ok(person), Err)
    }
}

/// Refreshes the list from the database. Part of the api role.
pub(crate) struct BlockListRefresher {
    rows: BlockRows,
    list: BlockList,
    pace: ReadingPace,
}

impl BlockListRefresher {
    /// Fills `list` from the database.
    #[must_use]
    pub(crate) fn new(rows: BlockRows, list: BlockList) -> Self {
        Self { rows, list, pace: ReadingPace::new(REFRESH_EVERY) }
    }

    /// Reads what was changed; `false` when that is not enough.
    async fn read_changes(&self) -> Result<bool, DbError> {
        if !self.pace.changes_are_enough() {
            return Ok(false);
        }
        let changed = self.rows.changed_within(CHANGED_S).await?;
        if let Some(changed) = changed.as_deref().filter(|changed| !changed.is_empty()) {
            self.list.read(changed, false);
        }
        Ok(changed.is_some())
    }

    async fn read_all(&mut self) -> Result<(), DbError> {
        let mut all: Vec<Block> = Vec::new();
        loop {
            let after = all.iter().rev().find_map(Block::buyer);
            let page = self.rows.page(after.as_ref(), PAGE_MAX).await?;
            if page.iter().all(|block| block.buyer().is_none()) {
                break;
            }
            all.extend(page);
        }
        self.list.read(&all, true);
        self.pace.filled();
        Ok(())
    }
}

impl Worker for BlockListRefresher {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let now = Instant::now();
        if !self.pace.is_due(now) {
            return Ok(Progress::Idle);
        }
        if !self.read_changes().await.map_err(Fault::back_off)? {
            // A block that is added while the pages are read is among the changes of the next reading.
            self.read_all().await.map_err(Fault::back_off)?;
        }
        self.pace.read(now);
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(buyer: &str, ends_at_ms: Option<i64>, lifted_at_ms: Option<i64>) -> Block {
        let user_id = buyer.as_bytes().to_vec();
        Block { user_id, reason: "r".to_owned(), ends_at_ms, blocked_at_ms: 1, lifted_at_ms }
    }

    #[test]
    fn a_block_holds_until_it_is_lifted_or_ends_and_a_bad_row_stops_no_other() {
        let list = BlockList::default();
        let blocked = |now_ms| {
            let is_blocked = |buyer: &&str| list.refusal(&UserId::parse(buyer).unwrap(), now_ms).is_some();
            ["ann", "bob", "eve"].into_iter().filter(is_blocked).collect::<Vec<_>>()
        };
        assert!(blocked(5).is_empty());
        list.read(&[block("ann", None, None), block("\u{7}", None, None), block("bob", Some(10), None)], true);
        assert_eq!(blocked(9), ["ann", "bob"]);
        assert_eq!(blocked(10), ["ann"], "it ended");
        list.read(&[block("ann", None, Some(8)), block("eve", None, None)], false);
        assert_eq!(blocked(9), ["bob", "eve"], "what was not changed stays");
        list.read(&[block("ann", None, None)], true);
        assert_eq!(blocked(9), ["ann"], "all were read");
        list.read(&[block("ann", None, Some(9))], false);
        assert!(blocked(9).is_empty());
    }
}
