//! Which sale ids exist, as far as a Bloom filter knows (A5): a flood of random ids ends here, in memory.
//!
//! Input: the ids in the database, looked over every second. Output: [`Known::may_exist`]. A filter never forgets and errs
//! only towards "may exist". What it has not heard of is still looked up at a trickle, so that a sale created a moment ago
//! is found at once on a quiet system and within a second in a flood. Until the first look it lets everything through.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::runtime::Worker;
use crate::store::mysql::{Db, sales};
use fastbloom::AtomicBloomFilter;
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// The database is asked for new ids this often.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Of a thousand ids that do not exist, about this many get through to the look-up.
const FALSE_POSITIVES: f64 = 0.001;
/// Room of a filter that has just been filled, in multiples of what it holds.
const GROWTH: usize = 2;
const ROOM_MIN: usize = 10_000;
/// Unheard-of ids a second that are looked up all the same.
const TRICKLE_PER_S: NonZeroU32 = NonZeroU32::MIN.saturating_add(49);

/// What one process knows of the sale ids. Clones share it.
#[derive(Clone)]
pub struct Known {
    filter: Arc<RwLock<Option<AtomicBloomFilter>>>,
    trickle: Arc<DefaultDirectRateLimiter>,
}

impl Default for Known {
    fn default() -> Self {
        let trickle = RateLimiter::direct(Quota::per_second(TRICKLE_PER_S));
        Self { filter: Arc::default(), trickle: Arc::new(trickle) }
    }
}

impl Known {
    /// Whether it is worth looking the sale up.
    #[must_use]
    pub fn may_exist(&self, id: &SaleId) -> bool {
        let heard_of = {
            let filter = self.filter.read().unwrap_or_else(PoisonError::into_inner);
            filter.as_ref().is_none_or(|filter| filter.contains(id.as_str()))
        };
        heard_of || self.trickle.check().is_ok()
    }

    /// Remembers a sale that was found.
    pub fn exists(&self, id: &SaleId) {
        if let Some(filter) = self.filter.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
            filter.insert(id.as_str());
        }
    }

    fn replace(&self, ids: &[SaleId]) {
        let room = (ids.len() * GROWTH).max(ROOM_MIN);
        let seed = &rand::random::<u128>();
        let filter = AtomicBloomFilter::with_false_pos(FALSE_POSITIVES).seed(seed).expected_items(room);
        for id in ids {
            filter.insert(id.as_str());
        }
        *self.filter.write().unwrap_or_else(PoisonError::into_inner) = Some(filter);
    }
}

/// Keeps the filter up with the database. Part of the api role.
pub struct KeepKnown {
    db: Db,
    known: Known,
    counted: i64,
    look_at: Instant,
}

impl KeepKnown {
    /// Fills `known` from the database.
    #[must_use]
    pub fn new(db: Db, known: Known) -> Self {
        Self { db, known, counted: -1, look_at: Instant::now() }
    }
}

impl Worker for KeepKnown {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if Instant::now() < self.look_at {
            return Ok(Progress::Idle);
        }
        let count = sales::count(&self.db).await.map_err(Fault::back_off)?;
        if count != self.counted {
            let mut ids: Vec<SaleId> = Vec::new();
            loop {
                let page = sales::ids_after(&self.db, ids.last()).await.map_err(Fault::back_off)?;
                if page.is_empty() {
                    break;
                }
                ids.extend(page);
            }
            self.known.replace(&ids);
            // A sale created while the pages were read may be in none of them; then the count differs at the next look.
            self.counted = count.min(i64::try_from(ids.len()).unwrap_or(i64::MAX));
        }
        self.look_at = Instant::now() + LOOK_EVERY;
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
        let known = Known::default();
        assert!(known.may_exist(&id("anything")), "nothing is refused before the first look");
        known.replace(&[id("a"), id("b")]);
        let passed = (0..10_000).filter(|n| known.may_exist(&id(&format!("random-{n}")))).count();
        assert!(passed < 200, "{passed} of 10,000 got through");
        assert!(known.may_exist(&id("a")) && known.may_exist(&id("b")));
        known.exists(&id("new"));
        assert!(known.may_exist(&id("new")));
    }
}
