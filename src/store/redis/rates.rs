//! Typed call of `lua/rate.lua`: buyers' token buckets, shared by all api processes.

use super::connection::{RedisFault, integer, list, text};
use super::keyspace::Keyspace;
use super::scripts::RATE;
use crate::domain::ids::UserId;
use std::sync::Arc;
use std::time::Duration;

/// Buyers' token buckets, shared by all api processes.
#[derive(Clone)]
pub struct RateBuckets {
    pub(super) redis: Arc<Keyspace>,
}

impl RateBuckets {
    /// Takes one unit for each of these buyers of one shard: `None` when it was there, else how long until one is.
    /// `rate_per_s` units grow back each second, up to a second's worth.
    /// After an error some buckets may have lost a unit.
    pub(crate) async fn take(
        &self,
        shard: u16,
        users: &[UserId],
        rate_per_s: u32,
    ) -> Result<Vec<Option<Duration>>, RedisFault> {
        let keys = users.iter().map(|user| self.redis.keys.rate(shard, user)).collect();
        let grow_us = 1_000_000 / u64::from(rate_per_s.max(1));
        let args = vec![text(grow_us.to_string()), text(rate_per_s.to_string())];
        let waits = list(self.redis.script(&RATE, keys, args).await?)?;
        if waits.len() != users.len() {
            return Err(RedisFault::Contract(format!("{} waits for {} buyers", waits.len(), users.len())));
        }
        let wait = |value| {
            let us = u64::try_from(integer(value)?).unwrap_or(0);
            Ok((us > 0).then(|| Duration::from_micros(us)))
        };
        waits.iter().map(wait).collect()
    }
}
