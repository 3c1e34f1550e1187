//! When the purchases of an open loop are due.
//!
//! Input: the plan's rate. Output: a permit for each purchase when its time has come, in order. A thread of its own gives them
//! out, because the runtime's timer counts in whole milliseconds: with it every purchase was late by one of them, or two, and
//! came together with all others of its millisecond.

use super::plan::LoadPlan;
use seckill::runtime::Stopper;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// Purchases that are due within this time come together: to wake up for each of them would cost as much as to send it.
const STEP: Duration = Duration::from_micros(250);
/// A stop is noticed within this time.
const CHECK_EVERY: Duration = Duration::from_millis(10);

/// `count` purchases at a constant rate.
#[derive(Debug, Clone, Copy)]
struct DueTimes {
    per_s: f64,
    count: u64,
}

impl DueTimes {
    /// When purchase `index` is due, counted from the start.
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    fn due(&self, index: u64) -> Duration {
        Duration::from_secs_f64(index as f64 / self.per_s)
    }

    /// How many are due after `elapsed`, when `given` were before.
    fn due_after(&self, elapsed: Duration, given: u64) -> u64 {
        (given..self.count).find(|index| self.due(*index) > elapsed).unwrap_or(self.count)
    }
}

/// The purchases of one open loop.
pub struct Schedule {
    times: DueTimes,
    /// Those who may wait at a time.
    connections: usize,
    stop: Stopper,
    permits: Arc<Semaphore>,
}

impl Schedule {
    /// That of `plan`; `None` for a closed loop.
    pub(super) fn of(plan: &LoadPlan) -> Option<Self> {
        let times = DueTimes { per_s: plan.rate_per_s?, count: plan.purchases() };
        Some(Self::new(times, plan.connections as usize, plan.stop.clone()))
    }

    /// `count` purchases at `per_s`, waited for by one task.
    #[must_use]
    pub fn for_one(per_s: f64, count: u64, stop: Stopper) -> Self {
        Self::new(DueTimes { per_s, count }, 1, stop)
    }

    fn new(times: DueTimes, connections: usize, stop: Stopper) -> Self {
        Self { times, connections, stop, permits: Arc::new(Semaphore::new(0)) }
    }

    /// When purchase `index` is due, counted from the start.
    #[must_use]
    pub fn due(&self, index: u64) -> Duration {
        self.times.due(index)
    }

    /// Starts giving out permits; the clock runs from `start`. Ends with the last purchase, with the plan's stopper, or when
    /// the crowd is gone.
    pub fn begin(&self, start: Instant) {
        let (times, connections, stop, crowd) =
            (self.times, self.connections, self.stop.clone(), Arc::downgrade(&self.permits));
        tokio::task::spawn_blocking(move || {
            let mut given = 0;
            while let Some(permits) = crowd.upgrade() {
                if given == times.count || stop.is_stopped() {
                    // Connections that still wait are released; they find no purchase left.
                    permits.add_permits(connections);
                    return;
                }
                let due = times.due_after(start.elapsed(), given);
                permits.add_permits(usize::try_from(due - given).unwrap_or(0));
                given = due;
                drop(permits);
                std::thread::sleep(times.due(given).saturating_sub(start.elapsed()).clamp(STEP, CHECK_EVERY));
            }
        });
    }

    /// Waits until one more purchase is due. Its number is taken afterwards, so numbers are in the order of time.
    pub async fn wait(&self) {
        // It is never closed.
        if let Ok(permit) = self.permits.acquire().await {
            permit.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_purchase_is_due_once_and_in_its_time() {
        let times = DueTimes { per_s: 1_000.0, count: 10 };
        let at = |ms, given| times.due_after(Duration::from_millis(ms), given);
        assert_eq!([at(0, 0), at(0, 1), at(4, 1), at(9, 5), at(1_000, 10), at(1_000, 0)], [1, 1, 5, 10, 10, 10]);
        assert_eq!(times.due(10), Duration::from_millis(10));
    }

    #[tokio::test]
    async fn who_waits_for_a_purchase_that_is_not_due_is_released_by_a_stop() {
        let stop = Stopper::new();
        let times = DueTimes { per_s: 0.001, count: 10 };
        let schedule = Schedule::new(times, 2, stop.clone());
        schedule.begin(Instant::now());
        schedule.wait().await;
        let mut others = Box::pin(async { tokio::join!(schedule.wait(), schedule.wait()) });
        let early = tokio::time::timeout(CHECK_EVERY * 3, &mut others).await;
        assert!(early.is_err(), "only the first one is due");
        stop.stop();
        tokio::time::timeout(Duration::from_secs(30), others).await.expect("released");
    }
}
