//! Keeps the keys up to date: reads a file again, fetches the issuer's set again, and reads at once when a token names a key that
//! is not there.
//!
//! Input: the place of the keys. Output: another set in place of the present one, when its keys differ. One reading at a time, and
//! never sooner than `auth.reread_s` after the last one began, whatever buyers send and whether that one failed. What cannot be
//! read or used leaves the keys as they are; it is logged once, counted, and tried again. A crash leaves nothing.

use super::CurrentKeys;
use super::parse::ReadText;
use super::source::KeySource;
use crate::config::{Algorithm, KeySection, KeySettings};
use crate::domain::fault::{Fault, Progress};
use crate::runtime::{PollInterval, Stopper, Worker, exponential_backoff, jittered};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bounds of what an issuer may say about the age of its set, seconds: some say 15 seconds, some a month.
const AGE_S: (u64, u64) = (60, 3600);
/// The first set is awaited by buyers, so the first pauses after a failure are short.
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The worker of one process.
pub(crate) struct KeySetRefresher {
    figures: KeyFigures,
    keys: Arc<CurrentKeys>,
    source: KeySource,
    algorithms: Vec<Algorithm>,
    pauses: Pauses,
    stopper: Stopper,
    /// When it reads without being asked to.
    due: Instant,
    /// A token's wish waits until then.
    not_before: Instant,
    /// The text that the present keys are of.
    text: Vec<u8>,
    failures: u32,
}

/// From the settings.
#[derive(Clone, Copy)]
struct Pauses {
    refresh: Duration,
    reread: Duration,
}

impl Pauses {
    /// Until the next reading after a good one. `jitter` shortens a pause, but none that an issuer asked for to below its bound.
    fn after_success(
        &self,
        is_remote: bool,
        max_age: Option<Duration>,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> Duration {
        let (low, high) = (Duration::from_secs(AGE_S.0), Duration::from_secs(AGE_S.1));
        match max_age {
            _ if !is_remote => jitter(self.reread),
            Some(age) => jitter(age.min(high)).max(low),
            None => jitter(self.refresh),
        }
    }

    /// Until the next try after a failed one. With keys in hand no buyer waits for it.
    fn after_failure(&self, has_keys: bool, failures: u32) -> Duration {
        if has_keys { self.reread } else { exponential_backoff(FIRST_RETRY, failures, self.reread.max(FIRST_RETRY)) }
    }
}

impl KeySetRefresher {
    /// How soon a token's wish is seen.
    pub(crate) const PACE: PollInterval = PollInterval::idle_ms(100);

    /// For keys that come from `source`.
    pub(in crate::p1_entry) fn new(
        keys: Arc<CurrentKeys>,
        source: KeySource,
        settings: &KeySettings<'_>,
        stopper: Stopper,
    ) -> Self {
        let pauses = Pauses {
            refresh: Duration::from_secs(settings.jwks_refresh_s),
            reread: Duration::from_secs(settings.reread_s),
        };
        let now = Instant::now();
        // A file was read a moment ago; the issuer's first set is awaited.
        let due = if source.is_remote() { now } else { now + pauses.reread };
        let figures = KeyFigures(settings.section);
        figures.are_stale(false);
        for result in ["changed", "same", "failed"] {
            figures.count(result, 0);
        }
        let algorithms = settings.algorithms.to_vec();
        Self { figures, keys, source, algorithms, pauses, stopper, due, not_before: due, text: Vec::new(), failures: 0 }
    }

    fn taken(&mut self, read: ReadText) {
        let ReadText { text, max_age } = read;
        if text != self.text {
            match self.source.parse(&text, &self.algorithms) {
                Err(problem) => return self.failed(problem),
                Ok(parsed) => {
                    let changed = self.keys.replace(parsed, self.source.name());
                    self.figures.count(if changed { "changed" } else { "same" }, 1);
                    self.text = text;
                }
            }
        } else {
            self.figures.count("same", 1);
        }
        if self.failures > 0 {
            tracing::info!(from = self.source.name(), failures = self.failures, "keys can be read again");
        }
        self.failures = 0;
        self.keys.set_problem(None);
        self.figures.are_stale(false);
        let pause = self.pauses.after_success(self.source.is_remote(), max_age, jittered);
        self.due = self.not_before.max(Instant::now() + pause);
    }

    fn failed(&mut self, problem: String) {
        let (from, failures) = (self.source.name(), self.failures);
        // Each new reason once; the rest would only fill the log.
        if self.keys.problem().as_ref() == Some(&problem) {
            tracing::debug!(from, problem, failures, "keys still cannot be read");
        } else {
            tracing::warn!(from, problem, "keys cannot be read; those that are there go on being used");
        }
        let has_keys = !self.keys.now().all().is_empty();
        self.keys.set_problem(Some(problem));
        self.figures.count("failed", 1);
        self.figures.are_stale(true);
        let retry = Instant::now() + jittered(self.pauses.after_failure(has_keys, failures));
        self.due = if has_keys { self.not_before.max(retry) } else { retry };
        self.failures = failures.saturating_add(1);
    }
}

impl Worker for KeySetRefresher {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let now = Instant::now();
        if now < self.due && !(self.keys.is_wanted() && now >= self.not_before) {
            return Ok(Progress::Idle);
        }
        // Before the reading: a failed one counts too, and so does the time that it takes.
        self.not_before = now + self.pauses.reread;
        self.keys.begin_reading();
        let read = tokio::select! {
            () = self.stopper.stopped() => return Ok(Progress::Idle),
            read = self.source.read() => read,
        };
        match read {
            Ok(read) => self.taken(read),
            Err(problem) => self.failed(problem),
        }
        Ok(Progress::Moved(1))
    }
}

/// The figures of one kind of keys.
struct KeyFigures(KeySection);

impl KeyFigures {
    fn count(&self, result: &'static str, readings: u64) {
        let counter = match self.0 {
            KeySection::Auth => metrics::counter!("seckill_p1_entry_key_reads_total", "result" => result),
            KeySection::Passes => metrics::counter!("seckill_p1_entry_pass_key_reads_total", "result" => result),
        };
        counter.increment(readings);
    }

    fn are_stale(&self, are_so: bool) {
        let gauge = match self.0 {
            KeySection::Auth => metrics::gauge!("seckill_p1_entry_keys_stale"),
            KeySection::Passes => metrics::gauge!("seckill_p1_entry_pass_keys_stale"),
        };
        gauge.set(f64::from(u8::from(are_so)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_reading_is_when_the_issuer_says_within_bounds() {
        let seconds = Duration::from_secs;
        let pauses = Pauses { refresh: seconds(600), reread: seconds(30) };
        for (remote, max_age, longest, shortest) in [
            (true, None, 600, 300),
            (true, Some(15), 60, 60),
            (true, Some(60), 60, 60),
            (true, Some(100), 100, 60),
            (true, Some(900), 900, 450),
            (true, Some(86_400), 3_600, 1_800),
            (false, None, 30, 15),
        ] {
            let pause = |jitter: fn(Duration) -> Duration| pauses.after_success(remote, max_age.map(seconds), jitter);
            assert_eq!(pause(|pause| pause), seconds(longest), "{max_age:?}");
            assert_eq!(pause(|pause| pause / 2), seconds(shortest), "{max_age:?}, the shortest that the lot gives");
        }
        let first: Vec<u64> = [0, 1, 2, 9].map(|failures| pauses.after_failure(false, failures).as_secs()).into();
        assert_eq!(first, [1, 2, 4, 30], "the first set is awaited");
        assert_eq!(pauses.after_failure(true, 0), seconds(30), "a failure counts for the floor");
    }
}
