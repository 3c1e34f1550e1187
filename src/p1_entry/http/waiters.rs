//! Long polls and event streams under way (A13). When landing is behind, everyone who bought waits; without a bound they would
//! take the connections that buyers need.
//!
//! Input: a question that wants to wait. Output: a place, or none: the question is then answered at once. A crash leaves nothing.

use crate::config;
use crate::http::{connections_max, worker_count};
use metrics::Gauge;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The places of one process.
pub struct Waiters {
    places: Arc<Semaphore>,
    count: Gauge,
}

/// A place. Dropping it makes room, also when its connection was lost.
pub(super) struct WaitingPlace {
    _place: OwnedSemaphorePermit,
    count: Gauge,
}

impl Drop for WaitingPlace {
    fn drop(&mut self) {
        self.count.decrement(1.0);
    }
}

impl Waiters {
    /// As many as the settings say; by default half of the connections that the process may really have.
    #[must_use]
    pub(crate) fn new(settings: &config::Http) -> Self {
        let places = match settings.waiters_max {
            0 => worker_count(settings).saturating_mul(connections_max(settings)) / 2,
            waiters_max => waiters_max,
        };
        let count = metrics::gauge!("seckill_p1_entry_waiters_count");
        count.set(0.0);
        Self { places: Arc::new(Semaphore::new(places.clamp(1, Semaphore::MAX_PERMITS))), count }
    }

    /// A place; `None` when too many wait.
    pub(super) fn enter(&self) -> Option<WaitingPlace> {
        let place = self.places.clone().try_acquire_owned().ok()?;
        self.count.increment(1.0);
        Some(WaitingPlace { _place: place, count: self.count.clone() })
    }
}
