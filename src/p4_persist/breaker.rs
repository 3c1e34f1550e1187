//! The circuit breaker around the database (D6): closed, open, half-open. It limits the load on the database. It never decides
//! what happens to a message.
//!
//! While it is open no messages are pulled: they stay in their queue, and their attempts are not counted. Pure; the caller
//! passes the clock in.
//!
//! Written by hand: it gates the pulling of messages, while breaker crates wrap a single call.

use crate::domain::outcome::Verdict;
use crate::store::mysql::DbError;
use std::time::{Duration, Instant};

/// Counts outages in a row.
#[derive(Debug)]
pub(super) struct DatabaseBreaker {
    failures_max: u32,
    pause: Duration,
    failures: u32,
    open_until: Option<Instant>,
}

impl DatabaseBreaker {
    pub(super) fn new(failures_max: u32, pause: Duration) -> Self {
        export_open(0.0);
        Self { failures_max, pause, failures: 0, open_until: None }
    }

    /// How many messages may be tried now: a whole group when closed, one when half-open, `None` when open.
    pub(super) fn admits(&self, now: Instant, group_max: usize) -> Option<usize> {
        match self.open_until {
            None => Some(group_max),
            Some(until) if now >= until => Some(1),
            Some(_) => None,
        }
    }

    /// Counts a group as a failure or a success. An outage of the whole database is a failure, an error of one row is not, nor is
    /// a locked sale: others come behind it in the queue.
    pub(super) fn observe(&mut self, now: Instant, verdicts: &[Result<Verdict, DbError>]) {
        let outage = verdicts.iter().any(|verdict| verdict.as_ref().is_err_and(DbError::is_outage));
        if outage {
            self.failures = self.failures.saturating_add(1);
            if self.failures >= self.failures_max {
                if self.open_until.is_none() {
                    tracing::warn!(
                        phase = "p4_persist",
                        failures = self.failures,
                        "breaker opens: the database is unavailable"
                    );
                    metrics::counter!("seckill_p4_persist_breaker_opened_total").increment(1);
                }
                self.open_until = Some(now + self.pause);
                export_open(1.0);
            }
        } else if !verdicts.is_empty() {
            if self.open_until.take().is_some() {
                tracing::info!(phase = "p4_persist", "breaker closes: the database is available again");
            }
            self.failures = 0;
            export_open(0.0);
        }
    }
}

/// Exports whether it is open: 1 or 0.
fn export_open(open: f64) {
    crate::telemetry::PERSIST_BREAKER_OPEN.set(&metrics::gauge!("seckill_p4_persist_breaker_open"), open);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_outages_in_a_row_tries_one_and_closes_again() {
        let (start, pause) = (Instant::now(), Duration::from_secs(1));
        let mut breaker = DatabaseBreaker::new(2, pause);
        let (outage, fine) = ([Err(DbError::Unavailable("down".into()))], [Ok(Verdict::Ordered)]);
        breaker.observe(start, &outage);
        breaker.observe(start, &fine);
        breaker.observe(start, &outage);
        assert_eq!(breaker.admits(start, 500), Some(500), "a success in between starts the row again");
        breaker.observe(start, &outage);
        assert_eq!(breaker.admits(start, 500), None);
        assert_eq!(breaker.admits(start + pause, 500), Some(1));
        breaker.observe(start + pause, &outage);
        assert_eq!(breaker.admits(start + pause, 500), None, "the one failed: open again");
        breaker.observe(start + pause * 2, &fine);
        assert_eq!(breaker.admits(start + pause * 2, 500), Some(500));
    }

    #[test]
    fn one_rows_trouble_and_undecodable_messages_do_not_count() {
        let now = Instant::now();
        let mut breaker = DatabaseBreaker::new(1, Duration::from_secs(1));
        breaker.observe(now, &[Err(DbError::LockWait), Ok(Verdict::Ordered)]);
        let locked = || Err(DbError::SaleLocked(crate::domain::ids::SaleId::parse("s").unwrap()));
        breaker.observe(now, &[locked(), Ok(Verdict::Ordered)]);
        breaker.observe(now, &[]);
        assert_eq!(breaker.admits(now, 500), Some(500));
        breaker.observe(now, &[locked(), locked()]);
        assert_eq!(breaker.admits(now, 500), Some(500), "other sales come behind a locked one");
    }
}
