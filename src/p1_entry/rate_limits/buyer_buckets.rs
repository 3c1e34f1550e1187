//! Buyers' buckets in Redis, taken from in groups. A buyer without a unit is remembered until one has grown back.

use crate::domain::ids::UserId;
use crate::domain::shard::home_shard;
use crate::runtime::batcher::{Bounds, Busy, QuestionBatcher};
use crate::store::redis::RateBuckets;
use moka::future::Cache;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const BOUNDS: Bounds = Bounds { group_max: 256, waiting_max: 8_192, in_flight_max: 2, idle_end: None };
/// Buyers remembered as refused. One who is forgotten is asked for in Redis again.
const BLOCKED_MAX: u64 = 50_000;
/// Longest wait for a unit, at a rate of one a second; the waits of clocks that were set back are cut to it.
const BLOCKED_TTL: Duration = Duration::from_secs(1);

/// Why no unit was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoUnit {
    /// None is there for this time.
    For(Duration),
    /// Too many buyers are waiting for their answer, or the process is stopping.
    Busy(Busy),
}

/// Entrance to the buckets.
pub(super) struct BuyerBuckets {
    batcher: QuestionBatcher<UserId, Option<Duration>>,
    blocked_until: Cache<UserId, Instant>,
}

impl BuyerBuckets {
    pub(super) fn start(buckets: RateBuckets, shards: u16, rate_per_s: u32) -> Self {
        let batcher = QuestionBatcher::start(BOUNDS, move |users| {
            let buckets = buckets.clone();
            async move { take(&buckets, shards, rate_per_s, users).await }
        });
        Self { batcher, blocked_until: Cache::builder().max_capacity(BLOCKED_MAX).time_to_live(BLOCKED_TTL).build() }
    }

    /// Takes one unit.
    pub(super) async fn take(&self, user: &UserId) -> Result<(), NoUnit> {
        if let Some(until) = self.blocked_until.get(user).await {
            let left = until.saturating_duration_since(Instant::now());
            if !left.is_zero() {
                return Err(NoUnit::For(left));
            }
        }
        let Some(wait) = self.batcher.ask(user.clone()).await.map_err(NoUnit::Busy)? else { return Ok(()) };
        // No unit can be there earlier: other processes take units, none puts one back.
        self.blocked_until.insert(user.clone(), Instant::now() + wait).await;
        Err(NoUnit::For(wait))
    }
}

/// One call for each shard; the answers in the order of the buyers.
async fn take(buckets: &RateBuckets, shards: u16, rate_per_s: u32, users: Vec<UserId>) -> Vec<Option<Duration>> {
    let mut of_shard: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (at, user) in users.iter().enumerate() {
        of_shard.entry(home_shard(user, shards)).or_default().push(at);
    }
    let calls = of_shard.into_iter().map(|(shard, places)| {
        let of_shard: Vec<UserId> = places.iter().map(|at| users[*at].clone()).collect();
        async move { (places, buckets.take(shard, &of_shard, rate_per_s).await) }
    });
    let mut waits = vec![None; users.len()];
    for (places, taken) in futures::future::join_all(calls).await {
        match taken {
            Ok(taken) => places.into_iter().zip(taken).for_each(|(at, wait)| waits[at] = wait),
            Err(error) => tracing::debug!(phase = "p1_entry", %error, "buyers' rates cannot be checked"),
        }
    }
    waits
}
