//! Rate limits of one process (A9): a bucket for everyone together and one for each buyer.

use crate::config;
use crate::domain::ids::UserId;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;

/// Checks requests against the buckets.
pub struct Limits {
    global: Option<DefaultDirectRateLimiter>,
    user: Option<DefaultKeyedRateLimiter<UserId>>,
    clock: DefaultClock,
}

impl Limits {
    /// Buckets as configured; a rate of 0 means no bucket.
    #[must_use]
    pub fn new(settings: &config::P1Entry) -> Self {
        let quota = |rate: u32| NonZeroU32::new(rate).map(Quota::per_second);
        Self {
            global: quota(settings.global_rate_per_s).map(RateLimiter::direct),
            user: quota(settings.user_rate_per_s).map(RateLimiter::keyed),
            clock: DefaultClock::default(),
        }
    }

    /// Takes one unit for this buyer.
    ///
    /// # Errors
    /// Seconds (rounded up, at least 1) after which a retry can succeed.
    pub fn take(&self, user: &UserId) -> Result<(), u64> {
        let seconds = |wait: std::time::Duration| wait.as_secs() + 1;
        if let Some(bucket) = &self.user {
            bucket.check_key(user).map_err(|full| seconds(full.wait_time_from(self.clock.now())))?;
        }
        if let Some(bucket) = &self.global {
            bucket.check().map_err(|full| seconds(full.wait_time_from(self.clock.now())))?;
        }
        Ok(())
    }

    /// Forgets buyers whose bucket is full again, so that memory follows the crowd of the moment.
    pub fn forget_idle(&self) {
        if let Some(bucket) = &self.user {
            bucket.retain_recent();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spent_bucket_says_when_to_come_back_and_leaves_others_alone() {
        let mut settings = crate::config::Settings::load(&crate::config::Layers::default()).unwrap().p1_entry;
        settings.user_rate_per_s = 2;
        let limits = Limits::new(&settings);
        let (a, b) = (UserId::parse("a").unwrap(), UserId::parse("b").unwrap());
        assert_eq!([limits.take(&a), limits.take(&a)], [Ok(()), Ok(())]);
        assert_eq!(limits.take(&a), Err(1));
        assert_eq!(limits.take(&b), Ok(()));
    }
}
