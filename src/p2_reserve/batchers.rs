//! The batchers of a process, by sale and shard. One without purchases for a while ends by itself (`group`), and leaves with
//! the next one that starts: a process that lives for months keeps no sale that it sold once.
//!
//! Input: a sale and a shard. Output: their batcher. A crash leaves nothing.

use crate::domain::ids::SaleId;
use crate::runtime::batcher::Batcher;
use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

/// Batchers that run, and those that ended since the last one started.
pub(super) struct Batchers<T>(RwLock<HashMap<(SaleId, u16), Batcher<T>>>);

impl<T> Default for Batchers<T> {
    fn default() -> Self {
        Self(RwLock::default())
    }
}

impl<T: Send + 'static> Batchers<T> {
    /// The batcher of one sale on one shard; `start` makes it when none runs.
    pub(super) fn get(&self, sale: &SaleId, shard: u16, start: impl FnOnce() -> Batcher<T>) -> Batcher<T> {
        let key = (sale.clone(), shard);
        let running = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(running) = running.filter(|batcher| !batcher.has_ended()) {
            return running;
        }
        let mut batchers = self.0.write().unwrap_or_else(PoisonError::into_inner);
        batchers.retain(|_, batcher| !batcher.has_ended());
        batchers.entry(key).or_insert_with(start).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::batcher::Bounds;
    use std::time::Duration;
    use tokio::runtime::Handle;

    fn start() -> Batcher<u8> {
        let idle_end = Some(Duration::from_millis(5));
        let bounds = Bounds { group_max: 1, waiting_max: 1, in_flight_max: 1, idle_end };
        Batcher::start(bounds, &Handle::current(), |_group| async {})
    }

    #[tokio::test]
    async fn a_batcher_that_ended_is_not_kept() {
        let batchers = Batchers::default();
        let sale = |n: u32| SaleId::parse(&format!("sale-{n}")).unwrap();
        for n in 0..100 {
            let batcher = batchers.get(&sale(n), 0, start);
            assert!(!batcher.has_ended());
            while !batcher.has_ended() {
                tokio::task::yield_now().await;
            }
        }
        assert!(!batchers.get(&sale(1), 0, start).has_ended(), "a fresh one");
        assert_eq!(batchers.0.read().unwrap().len(), 1);
    }
}
