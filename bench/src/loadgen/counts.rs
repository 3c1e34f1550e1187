//! Counts while a run goes on: one tally a connection, so that nothing is shared; merged when all are done.

use super::report::{AcceptedPurchase, Answers, BuyerAnswer, FinalAnswer, LoadReport, is_final_no};
use hdrhistogram::{AdditionError, CreationError, Histogram};
use std::time::Duration;

/// Broken promises kept for display; all of them are counted.
const BROKEN_KEPT_MAX: usize = 100;

impl LoadReport {
    /// Nothing seen yet.
    ///
    /// # Errors
    /// The histogram's, which its fixed settings do not have.
    pub(super) fn empty() -> Result<Self, CreationError> {
        Ok(Self {
            purchases: 0,
            requests: 0,
            accepted: 0,
            accepted_units: 0,
            accepted_twice: 0,
            by_status: Answers::default(),
            tokens_by_status: Answers::default(),
            places_by_status: Answers::default(),
            polls_by_status: Answers::default(),
            unknown: 0,
            unresolved: 0,
            connected: 0,
            not_connected: 0,
            replays: 0,
            replays_broken: 0,
            broken: Vec::new(),
            elapsed_ms: 0,
            // The smallest there is: the crowd's is put here at the end.
            latency_us: Histogram::new(0)?,
            accepted_requests: Vec::new(),
            history: Vec::new(),
        })
    }

    /// Writes down the last word about a purchase.
    pub(super) fn record(&mut self, final_answer: BuyerAnswer, keep: bool) {
        match (final_answer.verdict, final_answer.request_id) {
            (FinalAnswer::Accepted, Some(request_id)) => {
                self.accepted_requests.push(AcceptedPurchase {
                    request_id,
                    user: final_answer.user,
                    quantity: final_answer.quantity,
                });
            }
            (FinalAnswer::Unknown, _) => self.unresolved += 1,
            (FinalAnswer::Accepted | FinalAnswer::Refused { .. } | FinalAnswer::NotSent, _) => {}
        }
        if keep {
            self.history.push(final_answer);
        }
    }

    /// Compares the answer to a replay with the first answer.
    pub(super) fn replayed(&mut self, first: &BuyerAnswer, again: BuyerAnswer, keep: bool) {
        self.replays += 1;
        if first.verdict != FinalAnswer::Accepted {
            // A "no" may become a "yes" (stock was added) or a doubt; both are news about the purchase.
            if !matches!(again.verdict, FinalAnswer::Refused { .. }) {
                self.record(again, keep);
            }
            return;
        }
        let broken = match again.verdict {
            FinalAnswer::Accepted => again.request_id != first.request_id,
            FinalAnswer::Refused { status } => is_final_no(status),
            FinalAnswer::Unknown | FinalAnswer::NotSent => false,
        };
        if broken {
            self.replays_broken += 1;
            if self.broken.len() < BROKEN_KEPT_MAX {
                self.broken.push(again);
            }
        }
    }

    /// Adds what another connection has seen.
    pub(super) fn merge(&mut self, other: Self) {
        self.purchases += other.purchases;
        self.requests += other.requests;
        self.by_status.merge(&other.by_status);
        self.tokens_by_status.merge(&other.tokens_by_status);
        self.places_by_status.merge(&other.places_by_status);
        self.polls_by_status.merge(&other.polls_by_status);
        self.unknown += other.unknown;
        self.unresolved += other.unresolved;
        self.connected += other.connected;
        self.not_connected += other.not_connected;
        self.replays += other.replays;
        self.replays_broken += other.replays_broken;
        self.broken.extend(other.broken);
        self.broken.truncate(BROKEN_KEPT_MAX);
        self.accepted_requests.extend(other.accepted_requests);
        self.history.extend(other.history);
    }

    /// Both of two runs, of different buyers, one after the other.
    ///
    /// # Errors
    /// The histograms', which are all of one kind.
    pub(crate) fn and(mut self, later: Self) -> Result<Self, AdditionError> {
        let (elapsed_ms, twice) = (self.elapsed_ms + later.elapsed_ms, self.accepted_twice + later.accepted_twice);
        let mut latency_us = self.latency_us.clone();
        latency_us.add(&later.latency_us)?;
        self.merge(later);
        self.settle(Duration::from_millis(elapsed_ms), latency_us);
        self.accepted_twice += twice;
        Ok(self)
    }

    /// Closes the books: distinct requests, their units, the time it took.
    pub(super) fn settle(&mut self, elapsed: Duration, latency_us: Histogram<u64>) {
        self.latency_us = latency_us;
        let all = self.accepted_requests.len();
        self.accepted_requests.sort_unstable();
        self.accepted_requests.dedup_by_key(|accepted| accepted.request_id);
        self.accepted = u64::try_from(self.accepted_requests.len()).unwrap_or(u64::MAX);
        self.accepted_twice = u64::try_from(all).unwrap_or(u64::MAX) - self.accepted;
        self.accepted_units = self.accepted_requests.iter().map(|accepted| u64::from(accepted.quantity)).sum();
        self.elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use seckill::domain::ids::RequestId;

    /// A run in which these requests were accepted, one after the other, a millisecond each.
    fn run(ids: &[u64]) -> LoadReport {
        let mut report = LoadReport::empty().unwrap();
        let mut latency_us = Histogram::new_with_bounds(1, 1_000_000, 3).unwrap();
        for (id, user) in ids.iter().zip(0..) {
            let request_id = Some(RequestId::new(*id).unwrap());
            let final_answer =
                BuyerAnswer { user, request_id, quantity: 2, verdict: FinalAnswer::Accepted, doubted: false };
            report.requests += 1;
            report.record(final_answer, false);
            latency_us.record(1_000).unwrap();
        }
        report.settle(Duration::from_millis(ids.len() as u64), latency_us);
        report
    }

    #[test]
    fn two_runs_together_are_counted_as_one() {
        let both = run(&[1, 2, 2]).and(run(&[3, 4])).unwrap();
        assert_eq!((both.requests, both.accepted, both.accepted_units), (5, 4, 8));
        assert_eq!((both.accepted_twice, both.elapsed_ms, both.latency_us.len()), (1, 5, 5));
        assert_eq!(run(&[1]).and(run(&[1])).unwrap().accepted_twice, 1, "of different buyers");
    }
}
