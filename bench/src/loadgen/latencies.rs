//! The latencies of a whole crowd in one histogram.
//!
//! Input: a connection's latencies, some at a time. Output: the histogram. Its memory is made and touched before the clock
//! starts: a histogram for each connection, growing with the slowest answer so far, would stop everybody for the page faults
//! just when something was slow, and so measure itself.

use hdrhistogram::{CreationError, Histogram};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Latencies a connection keeps before it hands them over, count.
const BATCH_COUNT: usize = 128;
/// Upper limit of the histogram, microseconds: an hour. Slower answers count as this.
const SLOWEST_US: u64 = 3_600_000_000;

/// Everybody's latencies, microseconds.
pub(super) struct Latencies(Mutex<Histogram<u64>>);

impl Latencies {
    /// None yet.
    ///
    /// # Errors
    /// The histogram's, which its fixed settings do not have.
    pub fn new() -> Result<Self, CreationError> {
        // Three digits are exact to 0.1 %.
        let mut all = Histogram::new_with_bounds(1, SLOWEST_US, 3)?;
        // Writes to all of it.
        all.reset();
        Ok(Self(Mutex::new(all)))
    }

    /// What has been handed over so far; nothing is left behind.
    pub fn take(&self) -> Histogram<u64> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.clone();
        all.reset();
        taken
    }

    fn add(&self, batch: &mut Vec<u64>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        batch.drain(..).for_each(|us| all.saturating_record(us));
    }
}

/// The latest latencies of one connection.
pub(super) struct LatencyBatch(Vec<u64>);

impl LatencyBatch {
    pub fn new() -> Self {
        Self(Vec::with_capacity(BATCH_COUNT))
    }

    /// Counts one, and hands all over when there are many.
    pub fn took(&mut self, latency: Duration, all: &Latencies) {
        self.0.push(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
        if self.0.len() >= BATCH_COUNT {
            all.add(&mut self.0);
        }
    }

    /// Hands over the rest.
    pub fn end(&mut self, all: &Latencies) {
        all.add(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_counted_once_and_the_slowest_are_cut_to_an_hour() {
        let all = Latencies::new().unwrap();
        let mut batches = [LatencyBatch::new(), LatencyBatch::new()];
        for n in 0..300u64 {
            batches.iter_mut().for_each(|batch| batch.took(Duration::from_micros(n), &all));
        }
        batches[0].took(Duration::from_secs(100_000), &all);
        batches.iter_mut().for_each(|batch| batch.end(&all));
        let taken = all.take();
        assert_eq!((taken.len(), taken.min()), (601, 1));
        assert!(taken.max() >= SLOWEST_US && taken.max() < 2 * SLOWEST_US);
        assert_eq!(all.take().len(), 0);
    }
}
