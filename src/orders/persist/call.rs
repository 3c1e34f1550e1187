//! One call of [`Persister::persist_all`] under way: which requests are open, which have their verdict, and what makes further tries
//! pointless.
//!
//! Input: groups. Output: a verdict for each request. A crash leaves what the transactions leave.

use super::{GroupResult, LOCK_WAITS_MAX, Persister, seen};
use crate::domain::ids::{RequestId, SaleId};
use crate::domain::message::OrderMessage;
use crate::domain::outcome::{NextStep, Verdict, after_obstacle};
use crate::faults::left_out;
use crate::store::mysql::DbError;
use crate::store::mysql::codes::PersistSource;
use std::collections::BTreeSet;

/// One call of [`Persister::persist_all`] under way.
pub(super) struct PersistCall<'a> {
    pub(super) persister: &'a Persister,
    pub(super) items: &'a [OrderMessage],
    pub(super) source: PersistSource,
    pub(super) verdicts: Vec<Option<Result<Verdict, DbError>>>,
    pub(super) outage: Option<DbError>,
    pub(super) lock_waits: u32,
    /// Sales whose stock row another session holds; not tried, or not again, in this call.
    pub(super) locked: BTreeSet<SaleId>,
    /// The sale among those that were found locked that this call tries.
    pub(super) apart: Option<SaleId>,
}

impl PersistCall<'_> {
    pub(super) fn set(&mut self, index: usize, verdict: Result<Verdict, DbError>) {
        if let Some(place) = self.verdicts.get_mut(index) {
            *place = Some(verdict);
        }
    }

    fn set_all(&mut self, group: &[usize], verdict: &Result<Verdict, DbError>) {
        for index in group {
            self.set(*index, verdict.clone());
        }
    }

    fn refs(&self, group: &[usize]) -> Vec<&OrderMessage> {
        group.iter().filter_map(|index| self.items.get(*index)).collect()
    }

    /// Remembers an error that makes further tries pointless.
    pub(super) fn note(&mut self, error: &DbError) {
        if left_out!(LockedSentBack) && matches!(error, DbError::SaleLocked(_)) {
            return;
        }
        if error.is_lock_wait() {
            self.lock_waits += 1;
        }
        if let DbError::SaleLocked(sale) = error {
            self.meets_lock(sale);
        }
        if error.is_outage() {
            self.persister.locked.forget();
            self.outage = Some(error.clone());
        }
    }

    /// Those of the sale that is tried apart after all others, in the same order.
    pub(super) fn apart(&self, all: Vec<usize>) -> [Vec<usize>; 2] {
        let sale = self.apart.as_ref();
        let is_of =
            |index: &usize| self.items.get(*index).is_some_and(|accepted| Some(&accepted.purchase.sale_id) == sale);
        let (of_sale, others) = all.into_iter().partition(is_of);
        [others, of_sale]
    }

    pub(super) async fn persist_exactly(&mut self, whole: Vec<usize>) {
        // Each entry: a group, and whether repeats were already taken out of it.
        let mut open = vec![(whole, false)];
        while let Some((group, sifted)) = open.pop() {
            let group = self.without_locked(group);
            if group.is_empty() {
                continue;
            }
            if let Some(outage) = self.outage.clone() {
                self.set_all(&group, &Err(outage));
                continue;
            }
            if let [index] = group.as_slice() {
                self.persist_alone(*index).await;
                continue;
            }
            match self.persister.persist_refs(&self.refs(&group), self.source).await {
                Ok(GroupResult::Committed) => self.set_all(&group, &Ok(Verdict::Ordered)),
                Ok(GroupResult::Surprise) if !sifted => {
                    let rest = self.sift(&group).await;
                    if rest.len() < group.len() && !rest.is_empty() {
                        open.push((rest, true));
                    } else {
                        open.extend(halves(rest));
                    }
                }
                Ok(GroupResult::Surprise) => open.extend(halves(group)),
                Err(error) => {
                    self.note(&error);
                    if left_out!(LockedApart) && matches!(error, DbError::SaleLocked(_)) {
                        self.set_all(&group, &Err(DbError::LockWait));
                        continue;
                    }
                    if error.is_outage() {
                        self.set_all(&group, &Err(error));
                        continue;
                    }
                    if error.is_lock_wait() && self.lock_waits >= LOCK_WAITS_MAX {
                        let untried = self.without_locked(group);
                        self.set_all(&untried, &Err(DbError::LeftUntried));
                    } else if matches!(error, DbError::SaleLocked(_)) {
                        open.push((group, sifted));
                    } else {
                        open.extend(halves(group));
                    }
                }
            }
        }
    }

    pub(super) async fn persist_alone(&mut self, index: usize) {
        let Some(accepted) = self.items.get(index) else { return };
        let sale = &accepted.purchase.sale_id;
        let verdict = match self.outage.clone() {
            Some(outage) => Err(outage),
            None if self.locked.contains(sale) => Err(DbError::SaleLocked(sale.clone())),
            None => {
                let found = self.persister.persist_one(accepted, self.source).await;
                if let Err(error) = &found {
                    self.note(error);
                }
                found
            }
        };
        self.set(index, verdict);
    }

    /// Gives those that have an outcome their verdict and returns the rest.
    async fn sift(&mut self, group: &[usize]) -> Vec<usize> {
        let ids: Vec<RequestId> = self.refs(group).iter().map(|accepted| accepted.purchase.request_id).collect();
        let decided = match self.persister.requests.outcomes_of(&ids).await {
            Ok(decided) => decided,
            Err(error) => {
                self.note(&error);
                self.set_all(group, &Err(error));
                return Vec::new();
            }
        };
        let mut rest = Vec::with_capacity(group.len());
        for index in group {
            let Some(accepted) = self.items.get(*index) else { continue };
            match decided.get(&accepted.purchase.request_id).map(|decided| after_obstacle(seen(accepted, decided))) {
                Some(NextStep::Decided(verdict)) => self.set(*index, Ok(verdict)),
                Some(NextStep::RecordFailure(_) | NextStep::Park) | None => rest.push(*index),
            }
        }
        rest
    }
}

/// Two halves, the first half on top of the stack; nothing for nothing.
fn halves(mut group: Vec<usize>) -> Vec<(Vec<usize>, bool)> {
    let second = group.split_off(group.len() / 2);
    [second, group].into_iter().filter(|half| !half.is_empty()).map(|half| (half, true)).collect()
}
