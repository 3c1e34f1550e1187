//! Which sale ids can exist, by a Bloom filter (A5): a flood of random ids ends here, in memory.
//!
//! Input: the ids in the database, those of new sales every second. Output: [`SaleIdFilter::check`]. A filter errs only towards
//! "exists". Ids that it does not have are still looked up at a trickle, so that a sale created a moment ago is found at once on a
//! quiet system and within a second in a flood. Until the first read it lets everything through. A crash leaves nothing.
//!
//! A new sale is found by the moment of its creation (`reading_pace`). All ids are read at the start, after a pause in which a new
//! sale can have been missed, when the filter is full, and from time to time: that also forgets removed sales.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::p1_entry::reading_pace::{CHANGED_S, ReadingPace};
use crate::runtime::{Worker, now_ms};
use crate::sales::rows::SaleRows;
use crate::store::mysql::DbError;
use fastbloom::AtomicBloomFilter;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
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
    /// Read it: it may exist, or there is room for a read.
    MayExist,
    /// No sale of that id existed at this time, Unix milliseconds.
    UnknownAt(i64),
}

struct Filter {
    bits: AtomicBloomFilter,
    /// It has every sale that existed then, Unix milliseconds.
    complete_at_ms: i64,
}

type Trickle<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The filter of one process. Clones share it. The trickle is by the clock `C`.
#[derive(Clone)]
pub(crate) struct SaleIdFilter<C: Clock = DefaultClock> {
    filter: Arc<RwLock<Option<Filter>>>,
    trickle: Arc<Trickle<C>>,
}

impl Default for SaleIdFilter {
    fn default() -> Self {
        Self::by(DefaultClock::default())
    }
}

impl<C: Clock> SaleIdFilter<C> {
    fn by(clock: C) -> Self {
        let trickle = RateLimiter::direct_with_clock(Quota::per_second(TRICKLE_PER_S), clock);
        Self { filter: Arc::default(), trickle: Arc::new(trickle) }
    }

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

    /// Adds the new sales: with them the filter is complete as of `at_ms`. Returns how many it did not have.
    fn add(&self, new: &[SaleId], at_ms: i64) -> usize {
        let mut filter = self.filter.write().unwrap_or_else(PoisonError::into_inner);
        let Some(filter) = filter.as_mut() else { return 0 };
        filter.complete_at_ms = at_ms;
        // It returns whether the filter had it.
        new.iter().filter(|id| !filter.bits.insert(id.as_str())).count()
    }

    /// Begins anew with these ids; returns how many more there is room for.
    fn replace(&self, ids: &[SaleId], complete_at_ms: i64) -> usize {
        let room = (ids.len() * GROWTH).max(ROOM_MIN);
        let seed = &rand::random::<u128>();
        let bits = AtomicBloomFilter::with_false_pos(FALSE_POSITIVES).seed(seed).expected_items(room);
        for id in ids {
            bits.insert(id.as_str());
        }
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = Some(Filter { bits, complete_at_ms });
        room - ids.len()
    }
}

/// Refreshes the filter from the database. Part of the api role.
pub(crate) struct SaleIdFilterRefresher {
    sales: SaleRows,
    known: SaleIdFilter,
    pace: ReadingPace,
    /// Ids that the filter has room for.
    room: usize,
}

impl SaleIdFilterRefresher {
    /// Fills `known` from the database.
    #[must_use]
    pub(crate) fn new(sales: SaleRows, known: SaleIdFilter) -> Self {
        Self { sales, known, pace: ReadingPace::new(REFRESH_EVERY), room: 0 }
    }

    /// Reads the new ids; `false` when that is not enough.
    async fn add_new(&mut self, at_ms: i64) -> Result<bool, DbError> {
        if !self.pace.changes_are_enough() {
            return Ok(false);
        }
        let new = self.sales.created_within(CHANGED_S).await?;
        let Some(new) = new.filter(|new| new.len() <= self.room) else { return Ok(false) };
        self.room -= self.known.add(&new, at_ms);
        Ok(true)
    }

    async fn fill(&mut self, at_ms: i64) -> Result<(), DbError> {
        let mut ids: Vec<SaleId> = Vec::new();
        loop {
            let page = self.sales.ids_after(ids.last()).await?;
            if page.is_empty() {
                break;
            }
            ids.extend(page);
        }
        self.room = self.known.replace(&ids, at_ms);
        self.pace.filled();
        Ok(())
    }
}

impl Worker for SaleIdFilterRefresher {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let (now, now_ms) = (Instant::now(), now_ms());
        if !self.pace.is_due(now) {
            return Ok(Progress::Idle);
        }
        if !self.add_new(now_ms).await.map_err(Fault::back_off)? {
            // A sale that is created while the pages are read may be in none of them; then it is among the new ones of the next reading.
            self.fill(now_ms).await.map_err(Fault::back_off)?;
        }
        self.pace.read(now);
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;

    fn id(text: &str) -> SaleId {
        SaleId::parse(text).unwrap()
    }

    #[test]
    fn what_exists_always_passes_and_a_flood_of_others_is_a_trickle() {
        // Its time stands still: how slow a machine is changes nothing.
        let known = SaleIdFilter::by(FakeRelativeClock::default());
        assert_eq!(known.check(&id("anything")), FilterVerdict::MayExist, "nothing is refused before the first read");
        known.replace(&[id("a"), id("b")], 7);
        let flood = || (0..10_000).filter(|n| known.check(&id(&format!("random-{n}"))) == FilterVerdict::MayExist);
        let (passed, later) = (flood().count(), flood().count());
        // Those above the trickle are the false positives, which pass each time.
        assert_eq!(passed, later + TRICKLE_PER_S.get() as usize);
        assert!(later < 100, "{later} of 10,000 got through");
        let never =
            (0..).map(|n| id(&format!("never-{n}"))).find(|never| known.check(never) != FilterVerdict::MayExist);
        let never = never.expect("an id that is no false positive");
        assert_eq!(known.check(&never), FilterVerdict::UnknownAt(7));
        known.exists(&id("new"));
        assert_eq!(known.add(&[id("a"), id("new"), id("newest")], 9), 1, "one was not there");
        assert_eq!(known.check(&never), FilterVerdict::UnknownAt(9));
        assert!(
            ["a", "b", "new", "newest"].iter().all(|known_id| known.check(&id(known_id)) == FilterVerdict::MayExist)
        );
    }
}
