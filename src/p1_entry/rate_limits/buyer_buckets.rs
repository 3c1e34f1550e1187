//! Buyers' buckets in Redis, taken from in groups.

use crate::domain::ids::UserId;
use crate::domain::shard::home_shard;
use crate::runtime::Stopper;
use crate::runtime::batcher::{Bounds, QuestionBatcher};
use crate::store::redis::RateBuckets;
use std::collections::BTreeMap;
use std::time::Duration;

const BOUNDS: Bounds = Bounds { group_max: 256, waiting_max: 8_192, in_flight_max: 2, idle_end: None };

/// Entrance to the buckets.
pub(super) struct BuyerBuckets(QuestionBatcher<UserId, Option<Duration>>);

impl BuyerBuckets {
    pub(super) fn start(buckets: RateBuckets, shards: u16, rate_per_s: u32, stopper: &Stopper) -> Self {
        Self(QuestionBatcher::start(BOUNDS, stopper.clone(), move |users| {
            let buckets = buckets.clone();
            async move { take(&buckets, shards, rate_per_s, users).await }
        }))
    }

    /// Takes one unit; an error says how long until one is there.
    pub(super) async fn take(&self, user: &UserId) -> Result<(), Duration> {
        match self.0.ask(user.clone()).await {
            Ok(None) => Ok(()),
            Ok(Some(wait)) => Err(wait),
            Err(_busy) => Err(Duration::ZERO),
        }
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
