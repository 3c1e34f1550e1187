//! Which sale ids can exist, by a Bloom filter (A5): a flood of random ids ends here, in memory.
//!
//! Input: the ids in the database, read every second. Output: [`SaleIdFilter::check`]. A filter errs only towards "exists".
//! Ids that it does not have are still looked up at a trickle, so that a sale created a moment ago is found at once on a quiet
//! system and within a second in a flood. Until the first read it lets everything through. A crash leaves nothing.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::runtime::{Worker, now_ms};
use crate::sales::rows::SaleRows;
use fastbloom::AtomicBloomFilter;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The database is asked for new ids this often.
const REFRESH_EVERY: Duration = Duration::from_secs(1);
/// Of a thousand ids that do not exist, about this many get through to the look-up.
const FALSE_POSITIVES: f64 = 0.001;
/// Room of a filter that has just been filled, in multiples of what it holds.
const GROWTH: usize = 2;
const ROOM_MIN: usize = 10_000;
/// Unknown ids a second that are looked up all the same.
const TRICKLE_PER_S: NonZeroU32 = NonZeroU32::MIN.saturating_add(49);

/// What the filter says about a sale id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterVerdict {
    /// CatalogLookup it up: it may exist, or there is room for a read.
    MayExist,
    /// No sale of that id existed at this time, Unix milliseconds.
    UnknownAt(i64),
}

struct Filter {
    bits: AtomicBloomFilter,
    /// It has every sale that existed then, Unix milliseconds.
    complete_at_ms: i64,
}

/// The filter of one process. Clones share it.
#[derive(Clone)]
pub(crate) struct SaleIdFilter {
    filter: Arc<RwLock<Option<Filter>>>,
    trickle: Arc<DefaultDirectRateLimiter>,
}

impl Default for SaleIdFilter {
    fn default() -> Self {
        let trickle = RateLimiter::direct(Quota::per_second(TRICKLE_PER_S));
        Self { filter: Arc::default(), trickle: Arc::new(trickle) }
    }
}

impl SaleIdFilter {
    /// Whether it is worth reading the sale.
    #[must_use]
    pub(crate) fn check(&self, id: &SaleId) -> FilterVerdict {
        let unknown_at_ms = {
            let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
            let unknown = filter.as_ref().filter(|filter| !filter.bits.contains(id.as_str()));
            unknown.map(|filter| filter.complete_at_ms)
        };
        match unknown_at_ms {
            Some(at_ms) if self.trickle.check().is_err() => FilterVerdict::UnknownAt(at_ms),
            Some(_) | None => FilterVerdict::MayExist,
        }
    }

    /// Remembers a sale that was found.
    pub(crate) fn exists(&self, id: &SaleId) {
        if let Some(filter) = self.filter.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            filter.bits.insert(id.as_str());
        }
    }

    /// Nothing has changed since the filter was filled.
    fn still_complete(&self, at_ms: i64) {
        if let Some(filter) = self.filter.write().unwrap_or_else(PoisonError::into_inner).as_mut() {
            filter.complete_at_ms = at_ms;
        }
    }

    fn replace(&self, ids: &[SaleId], complete_at_ms: i64) {
        let room = (ids.len() * GROWTH).max(ROOM_MIN);
        let seed = &rand::random::<u128>();
        let bits = AtomicBloomFilter::with_false_pos(FALSE_POSITIVES).seed(seed).expected_items(room);
        for id in ids {
            bits.insert(id.as_str());
        }
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = Some(Filter { bits, complete_at_ms });
    }
}

/// Refreshes the filter from the database. Part of the api role.
pub(crate) struct SaleIdFilterRefresher {
    sales: SaleRows,
    known: SaleIdFilter,
    /// Sales there, and sales removed.
    counted: (i64, i64),
    refresh_at: Instant,
}

impl SaleIdFilterRefresher {
    /// Fills `known` from the database.
    #[must_use]
    pub(crate) fn new(sales: SaleRows, known: SaleIdFilter) -> Self {
        Self { sales, known, counted: (-1, 0), refresh_at: Instant::now() }
    }
}

impl Worker for SaleIdFilterRefresher {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if Instant::now() < self.refresh_at {
            return Ok(Progress::Idle);
        }
        let read_at_ms = now_ms();
        let count = self.sales.count().await.map_err(Fault::back_off)?;
        if count == self.counted {
            self.known.still_complete(read_at_ms);
        } else {
            let mut ids: Vec<SaleId> = Vec::new();
            loop {
                let page = self.sales.ids_after(ids.last()).await.map_err(Fault::back_off)?;
                if page.is_empty() {
                    break;
                }
                ids.extend(page);
            }
            self.known.replace(&ids, read_at_ms);
            // A sale created while the pages were read may be in none of them; then the count differs at the next read.
            self.counted = (count.0.min(i64::try_from(ids.len()).unwrap_or(i64::MAX)), count.1);
        }
        self.refresh_at = Instant::now() + REFRESH_EVERY;
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SaleId {
        SaleId::parse(text).unwrap()
    }

    #[test]
    fn what_exists_always_passes_and_a_flood_of_others_is_a_trickle() {
        let known = SaleIdFilter::default();
        assert_eq!(known.check(&id("anything")), FilterVerdict::MayExist, "nothing is refused before the first read");
        known.replace(&[id("a"), id("b")], 7);
        let random = |n: i32| known.check(&id(&format!("random-{n}")));
        let passed = (0..10_000).filter(|n| random(*n) == FilterVerdict::MayExist).count();
        assert!(passed < 200, "{passed} of 10,000 got through");
        assert_eq!(known.check(&id("never")), FilterVerdict::UnknownAt(7));
        known.still_complete(9);
        assert_eq!(known.check(&id("never")), FilterVerdict::UnknownAt(9));
        known.exists(&id("new"));
        assert!(["a", "b", "new"].iter().all(|known_id| known.check(&id(known_id)) == FilterVerdict::MayExist));
    }
}
