//! How orders are written, by P4 and by P5's compensation: accepted requests become orders or recorded failures.
//!
//! Input: [`OrderMessage`] requests, any number of times, in any order, from any number of processes at once. Output: one
//! [`Verdict`] each. A crash before COMMIT leaves nothing; after it, the repeat finds `request_outcome` and answers
//! [`Verdict::Already`]. A failure is recorded before its verdict is returned, so a verdict may always be acknowledged.
//!
//! [`Persister::persist_all`] tries everything as one transaction. After a surprise it finds the repeats, then it halves what is left
//! until each request stands alone in [`Persister::persist_one`], where every obstacle has a name.

mod call;
mod facts;
mod locked;
mod numbers;
mod one;
mod plan;
mod refused;
mod sale_facts;
pub(crate) mod traced;
mod write;

use crate::domain::ids::SaleId;
use crate::domain::message::OrderMessage;
use crate::domain::outcome::{Obstacle, Verdict};
use crate::events::webhooks::rows::Subscriptions;
use crate::orders::rows::RequestRows;
use crate::orders::rows::outcomes::RequestOutcome;
use crate::store::mysql::codes::PersistSource;
use crate::store::mysql::sessions::LOCK_WAIT_MAX_S;
use crate::store::mysql::{Db, DbError};
use call::PersistCall;
use locked::LockedSales;
pub(crate) use one::DETAIL_CHARS_MAX;
use plan::WritePlan;
pub(crate) use refused::refused_from_zero;
use sale_facts::SaleFactsCache;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use write::Blocked;

/// Most requests in one transaction; a longer input is persisted in several. Bounds statement size and lock time.
pub(crate) const GROUP_MAX: usize = 1000;
/// How often a group that lost a deadlock is tried again as it is; deadlocks between such transactions are normal.
const DEADLOCK_TRIES: u32 = 3;
/// Row-lock waits (3 s each) that one call of [`Persister::persist_all`] sits out while it finds the locked row. After them what is open is
/// tried once more as it stands, and what meets another lock is left to the next call.
const LOCK_WAITS_MAX: u32 = 8;
/// So long row locks keep a call at most; its requests are in no queue meanwhile, and `p5_reconcile.quiet_ms` has to be longer.
pub(crate) const HELD_MAX: Duration = Duration::from_secs((LOCK_WAITS_MAX as u64 + 1) * LOCK_WAIT_MAX_S);

/// Writes accepted requests: the handle of P4, and of what P5 and operators decide about requests. Clones share what they know.
#[derive(Clone)]
pub struct Persister {
    db: Db,
    requests: RequestRows,
    facts: Arc<SaleFactsCache>,
    locked: Arc<LockedSales>,
    subscriptions: Subscriptions,
}

impl Persister {
    /// For the webhooks of these subscriptions.
    #[must_use]
    pub fn new(db: Db, subscriptions: Subscriptions) -> Self {
        Self {
            requests: RequestRows::new(db.clone()),
            db,
            facts: Arc::default(),
            locked: Arc::default(),
            subscriptions,
        }
    }
}

/// What became of a group that was tried as one transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupResult {
    /// Every request has its order, committed now.
    Committed,
    /// At least one request met an obstacle; everything was rolled back.
    Surprise,
}

impl Persister {
    /// Persists a group in one transaction, all or nothing. An empty group is committed.
    ///
    /// # Errors
    /// [`DbError`]; nothing is committed, except that [`DbError::Unavailable`] and [`DbError::Timeout`] leave it unknown.
    pub async fn persist_group(&self, group: &[OrderMessage], source: PersistSource) -> Result<GroupResult, DbError> {
        let group: Vec<&OrderMessage> = group.iter().collect();
        self.persist_refs(&group, source).await
    }

    async fn persist_refs(&self, group: &[&OrderMessage], source: PersistSource) -> Result<GroupResult, DbError> {
        if group.is_empty() {
            return Ok(GroupResult::Committed);
        }
        let sale_ids: BTreeSet<&SaleId> = group.iter().map(|accepted| &accepted.purchase.sale_id).collect();
        let sale_ids: Vec<&SaleId> = sale_ids.into_iter().collect();
        let facts = self.facts_of(&sale_ids).await?;
        let Ok(plan) = WritePlan::of(group, &facts, source, &self.subscriptions.wanted().await?)? else {
            return Ok(GroupResult::Surprise);
        };
        let mut tries = 1;
        loop {
            match write::transact(&self.db, "land_group", &plan).await {
                Ok(None) => return Ok(GroupResult::Committed),
                Ok(Some(blocked)) => {
                    self.learn_from(blocked, sale_ids);
                    return Ok(GroupResult::Surprise);
                }
                Err(DbError::Deadlock) if tries < DEADLOCK_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// What was remembered of these sales may be what stopped the transaction: the next one reads it again.
    fn learn_from<'a>(&self, blocked: Blocked, sale_ids: impl IntoIterator<Item = &'a SaleId>) {
        match blocked {
            Blocked::Closed => self.facts.forget(sale_ids),
            Blocked::Outcome | Blocked::Buyer | Blocked::Limit | Blocked::Stock => {}
        }
    }

    /// Persists requests and gives each its own exact verdict, in input order. One request's error does not touch the others,
    /// unless the database as a whole is the problem ([`DbError::is_outage`]): then nothing more is tried.
    pub async fn persist_all(&self, items: &[OrderMessage], source: PersistSource) -> Vec<Result<Verdict, DbError>> {
        traced::decide(items, source.code());
        let known = self.locked.among(items.iter().map(|accepted| &accepted.purchase.sale_id), Instant::now());
        let mut round = PersistCall {
            persister: self,
            items,
            source,
            verdicts: vec![None; items.len()],
            outage: None,
            lock_waits: 0,
            locked: known.left_alone,
            apart: known.tried_apart,
        };
        round.ask_for_the_one_apart().await;
        let id_at = |index: usize| items.get(index).map(|accepted| accepted.purchase.request_id);
        // In the order of the transaction; of equal ids the first one leads.
        let mut in_order: Vec<usize> = (0..items.len()).collect();
        in_order.sort_by_key(|index| id_at(*index));
        let mut firsts = Vec::with_capacity(items.len());
        let mut repeats = Vec::new();
        for same in in_order.chunk_by(|one, next| id_at(*one) == id_at(*next)) {
            firsts.extend(same.first());
            repeats.extend(same.iter().skip(1));
        }
        for group in round.apart(firsts) {
            for group in group.chunks(GROUP_MAX) {
                round.persist_exactly(group.to_vec()).await;
            }
        }
        if let Some(sale) = round.apart.as_ref().filter(|sale| round.outage.is_none() && !round.locked.contains(*sale))
        {
            self.locked.freed(sale);
        }
        // A repeat inside the input is a redelivery like any other: its outcome is in the database.
        for index in repeats {
            round.persist_alone(index).await;
        }
        let missing = || Err(DbError::Other("a request of the group was not examined".to_owned()));
        let verdicts: Vec<_> = round.verdicts.into_iter().map(|verdict| verdict.unwrap_or_else(missing)).collect();
        items.iter().zip(&verdicts).for_each(|(accepted, verdict)| traced::decided(accepted, source.code(), verdict));
        verdicts
    }
}

/// The obstacle that an existing outcome of the same request id is.
pub(crate) fn seen(accepted: &OrderMessage, decided: &RequestOutcome) -> Obstacle {
    if decided.payload_hash == accepted.payload_hash() {
        Obstacle::SameOutcome(decided.outcome)
    } else {
        Obstacle::OtherOutcome
    }
}
