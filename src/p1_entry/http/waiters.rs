//! Long polls and event streams under way (A13). When landing is behind, everyone who bought waits; without a bound they would
//! take the connections that buyers need, and the memory of the process. And without a bound for each buyer, one account would
//! take the places of all others.
//!
//! Input: a question that wants to wait. Output: a place, or none: the question is then answered at once. A crash leaves nothing.

use crate::config;
use crate::domain::ids::UserId;
use crate::http::{connections_max, worker_count};
use metrics::Gauge;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most places that are there without a setting. One that waits takes about 19 KB with its connection, so these are 380 MB: beside
/// everything else of the role they fit into the gibibyte that deploy/kubernetes gives it.
const DEFAULT_MAX: usize = 20_000;
/// Places of one buyer: a phone, a browser and a tablet, each with some orders that have not landed. What wants more is a program,
/// and can ask about its requests one after the other.
const BUYER_MAX: u8 = 8;
/// Parts of the buyers, each with a lock of its own.
const PARTS: usize = 16;

/// The places of one process.
pub struct Waiters {
    places: Arc<Semaphore>,
    buyers: Arc<WaitingBuyers>,
    count: Gauge,
}

/// Why there is no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// This buyer has as many as one buyer may have.
    Yours,
    /// All are taken.
    Anyones,
}

/// How many places each buyer has who has any.
struct WaitingBuyers {
    parts: [Mutex<HashMap<UserId, u8>>; PARTS],
    hasher: RandomState,
}

/// A place. Dropping it makes room, also when its connection was lost.
pub(super) struct WaitingPlace {
    user: UserId,
    buyers: Arc<WaitingBuyers>,
    count: Gauge,
    _place: OwnedSemaphorePermit,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.buyers.leave(&self.user);
        self.count.decrement(1.0);
    }
}

impl WaitingBuyers {
    fn new() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }

    fn in_part<T>(&self, user: &UserId, work: impl FnOnce(&mut HashMap<UserId, u8>) -> T) -> Option<T> {
        let part = usize::try_from(self.hasher.hash_one(user) % PARTS as u64).unwrap_or_default();
        Some(work(&mut self.parts.get(part)?.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Whether there was a place left for this buyer.
    fn enter(&self, user: &UserId) -> bool {
        let entered = self.in_part(user, |buyers| match buyers.get_mut(user) {
            Some(places) if *places >= BUYER_MAX => false,
            Some(places) => {
                *places += 1;
                true
            }
            None => {
                buyers.insert(user.clone(), 1);
                true
            }
        });
        entered.unwrap_or_default()
    }

    fn leave(&self, user: &UserId) {
        self.in_part(user, |buyers| match buyers.get_mut(user) {
            Some(places) if *places > 1 => *places -= 1,
            Some(_) | None => drop(buyers.remove(user)),
        });
    }
}

impl Waiters {
    /// As many as the settings say; by default half of the connections that the process may really have, and never more than
    /// memory bears.
    #[must_use]
    pub(crate) fn new(settings: &config::Http) -> Self {
        let connections = || worker_count(settings).saturating_mul(connections_max(settings));
        let places = match settings.waiters_max {
            0 => default_places(connections()),
            waiters_max => waiters_max.min(Semaphore::MAX_PERMITS),
        };
        let count = metrics::gauge!("seckill_p1_entry_waiters_count");
        count.set(0.0);
        Self { places: Arc::new(Semaphore::new(places)), buyers: Arc::new(WaitingBuyers::new()), count }
    }

    /// A place for this buyer.
    pub(super) fn enter(&self, user: &UserId) -> Result<WaitingPlace, NoPlace> {
        let place = self.places.clone().try_acquire_owned().map_err(|_none| NoPlace::Anyones)?;
        if !self.buyers.enter(user) {
            return Err(NoPlace::Yours);
        }
        self.count.increment(1.0);
        let (user, buyers, count) = (user.clone(), self.buyers.clone(), self.count.clone());
        Ok(WaitingPlace { user, buyers, count, _place: place })
    }
}

fn default_places(connections: usize) -> usize {
    (connections / 2).clamp(1, DEFAULT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiters(places: usize) -> Waiters {
        let set = vec![format!("http.waiters_max={places}")];
        Waiters::new(&config::Settings::load(&config::Layers { files: Vec::new(), set }).unwrap().http)
    }

    #[test]
    fn the_default_is_half_of_the_connections_and_no_more_than_memory_bears() {
        assert_eq!([0, 1, 4_000, 50_000, 25_000 * 64].map(default_places), [1, 1, 2_000, DEFAULT_MAX, DEFAULT_MAX]);
    }

    #[test]
    fn a_buyer_has_a_few_places_and_all_together_have_those_of_the_settings() {
        let (waiters, user) = (waiters(10), |name: &str| UserId::parse(name).unwrap());
        let (alice, bob) = (user("alice"), user("bob"));
        let mut held: Vec<_> = (0..BUYER_MAX).map(|_| waiters.enter(&alice).ok().unwrap()).collect();
        assert_eq!(waiters.enter(&alice).err(), Some(NoPlace::Yours));
        let bobs: Vec<_> = (0..2).map(|_| waiters.enter(&bob).ok().unwrap()).collect();
        assert_eq!(waiters.enter(&bob).err(), Some(NoPlace::Anyones));
        held.pop();
        assert!(waiters.enter(&alice).is_ok(), "what was refused has taken nothing");
        drop((held, bobs));
        assert_eq!(waiters.places.available_permits(), 10);
        assert!(waiters.buyers.parts.iter().all(|part| part.lock().unwrap().is_empty()), "no waiter is left");
    }
}
