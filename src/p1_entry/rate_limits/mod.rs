//! Rate limits (A9): a bucket for each buyer, shared by all processes through Redis, and one for everything one process takes
//! in. Both are checked after everything that can be refused without a server, so a flood at a sold-out sale costs none. A buyer's
//! calls about his own orders take of the same buckets: each is a read of the database.
//!
//! The buyer's bucket comes first: what one account sends above its rate takes nothing of the process' rate, and until a unit
//! grows back it is refused in memory (A13).
//!
//! When Redis cannot be asked the buyer's bucket lets through: the purchase itself needs Redis and is refused there.

mod buyer_buckets;

use super::overload::overloaded;
use crate::config;
use crate::domain::ids::UserId;
use crate::http::problem::{Kind, Problem};
use crate::store::redis::RateBuckets;
use buyer_buckets::{BuyerBuckets, NoUnit};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::time::Duration;

/// Buyers who were refused at one moment come back within this time, seconds, not at one moment.
const SPREAD_S: u64 = 2;

/// Checks requests against the buckets.
pub(crate) struct RateLimits {
    global: Option<DefaultDirectRateLimiter>,
    user: Option<BuyerBuckets>,
    clock: DefaultClock,
}

impl RateLimits {
    /// Buckets as configured; a rate of 0 means no bucket. Its calls run on the runtime this is called in.
    #[must_use]
    pub(crate) fn start(settings: &config::P1Entry, buckets: RateBuckets, shards: u16) -> Self {
        Self {
            global: global(settings.global_rate_per_s),
            user: (settings.user_rate_per_s > 0)
                .then(|| BuyerBuckets::start(buckets, shards, settings.user_rate_per_s)),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one unit for this buyer.
    ///
    /// # Errors
    /// 429 with the seconds (rounded up, at least 1) after which a retry can succeed; 503 when too many buyers' buckets are
    /// being asked for.
    pub(crate) async fn take(&self, user: &UserId) -> Result<(), Problem> {
        self.take_of_buyer(user).await?;
        match &self.global {
            Some(bucket) => bucket.check().map_err(|full| limited(full.wait_time_from(self.clock.now()))),
            None => Ok(()),
        }
    }

    /// The same of the buyer's rate alone: for calls that must not take the process' rate from purchases.
    ///
    /// # Errors
    /// As [`RateLimits::take`].
    pub(crate) async fn take_of_buyer(&self, user: &UserId) -> Result<(), Problem> {
        match &self.user {
            // Boxed: without a rate no purchase carries it.
            Some(buyer_buckets) => Box::pin(buyer_buckets.take(user)).await.map_err(refused),
            None => Ok(()),
        }
    }
}

fn refused(no_unit: NoUnit) -> Problem {
    match no_unit {
        NoUnit::For(wait) => limited(wait),
        // It is not this buyer who is too fast.
        NoUnit::Busy(busy) => overloaded(&busy.to_string()),
    }
}

fn limited(wait: Duration) -> Problem {
    let seconds = seconds(wait);
    Problem::from(Kind::RateLimited).retry_within_s(seconds..=seconds + SPREAD_S)
}

fn global(rate_per_s: u32) -> Option<DefaultDirectRateLimiter> {
    NonZeroU32::new(rate_per_s).map(Quota::per_second).map(RateLimiter::direct)
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::batcher::Busy;

    #[test]
    fn a_buyer_above_the_rate_gets_that_answer_and_one_whose_bucket_cannot_be_asked_for_gets_that_the_process_is_busy()
    {
        assert_eq!(refused(NoUnit::For(Duration::from_millis(300))).kind(), Kind::RateLimited);
        assert_eq!(refused(NoUnit::Busy(Busy)).kind(), Kind::Overloaded);
    }

    #[test]
    fn a_spent_bucket_says_when_to_come_back() {
        assert!(global(0).is_none(), "no limit");
        let (bucket, clock) = (global(2).unwrap(), DefaultClock::default());
        assert!(bucket.check().is_ok());
        let spent = (0..100).find_map(|_| bucket.check().err()).expect("a spent bucket");
        assert_eq!(seconds(spent.wait_time_from(clock.now())), 1);
    }
}
