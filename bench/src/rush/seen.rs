//! What the buyers of a rush saw, and what it comes to.
//!
//! Input: an answer or its absence with its times for each buyer. Output: figures. Pure.

use crate::latency;
use crate::loadgen::http::{HttpError, ServerResponse};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::time::Duration;

/// No buyer should wait longer.
const SOON: Duration = Duration::from_secs(1);
/// The slowest are one of this number.
const SLOWEST: usize = 100;

/// How it ended for a buyer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum RushOutcome {
    /// An answer with this status.
    Status(u16),
    /// No answer; why.
    None(Cow<'static, str>),
}

impl RushOutcome {
    pub fn of(result: Result<ServerResponse<'_>, HttpError>) -> Self {
        match result {
            Ok(answer) => Self::Status(answer.status()),
            Err(error) => Self::None(why(&error).into()),
        }
    }

    pub const fn is_answer(&self) -> bool {
        matches!(self, Self::Status(_))
    }

    /// "Not now": the api had no room, or the buyer no rate.
    const fn is_busy(&self) -> bool {
        matches!(self, Self::Status(429 | 503))
    }

    fn name(&self) -> String {
        match self {
            Self::Status(status) => status.to_string(),
            Self::None(why) => why.to_string(),
        }
    }
}

fn why(error: &HttpError) -> &'static str {
    let kinds = [
        (ErrorKind::ConnectionRefused, "connection refused"),
        (ErrorKind::ConnectionReset, "reset"),
        (ErrorKind::BrokenPipe, "reset"),
        (ErrorKind::TimedOut, "no connection in time"),
        (ErrorKind::AddrInUse, "no free port"),
        (ErrorKind::AddrNotAvailable, "no free port"),
    ];
    match error {
        HttpError::Connect { source, .. } | HttpError::Broken(source) => {
            let known = kinds.iter().find(|(kind, _)| *kind == source.kind());
            known.map_or("connection broken", |(_, words)| words)
        }
        HttpError::TimedOut(_) => "no answer in time",
        HttpError::Closed => "closed without an answer",
        HttpError::Unreadable(_) => "unreadable answer",
        HttpError::BadUrl(_) | HttpError::Resolve(_) => "no address",
    }
}

/// One buyer. `due`, `begun` and `opened` count from the start of the rush.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    pub due: Duration,
    pub begun: Duration,
    /// When its connection was there.
    pub opened: Option<Duration>,
    /// From when it was due to its answer, or until it gave up.
    pub took: Duration,
    pub outcome: RushOutcome,
    /// Of those who keep their connection: whether the next answer came on the same one.
    pub kept: Option<bool>,
}

/// How long something took, ms.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Waits {
    pub count: usize,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
}

impl Waits {
    pub fn of(waits: impl Iterator<Item = Duration>) -> Self {
        let mut sorted: Vec<Duration> = waits.collect();
        sorted.sort_unstable();
        let at = |percent| latency::ms(u64::try_from(at_percent(&sorted, percent).as_micros()).unwrap_or(u64::MAX));
        Self { count: sorted.len(), p50_ms: at(50), p99_ms: at(99), max_ms: at(100) }
    }
}

/// The smallest that this number of per cent do not exceed; zero of nothing.
fn at_percent(sorted: &[Duration], percent: usize) -> Duration {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or_default()
}

/// A rush in figures.
#[derive(Debug, Serialize)]
pub(super) struct RushFigures {
    pub buyers: usize,
    /// Connections that were begun, and that were there, within the first second.
    pub begun_first_s: usize,
    pub opened_first_s: usize,
    /// How late the load generator was: from when a purchase was due to when its connection was begun.
    pub lateness: Waits,
    pub answered: usize,
    pub answered_within_1s: usize,
    /// From when each was due to its answer.
    pub answers: Waits,
    pub by_outcome: BTreeMap<String, Waits>,
    /// The same of the slowest hundredth; who got no answer is slower than everybody.
    pub slowest: BTreeMap<String, Waits>,
    /// Answers 429 and 503.
    pub busy_answers: usize,
    /// Kept connections on which a second answer came, and all on which one was asked for.
    pub kept: usize,
    pub kept_asked: usize,
}

impl RushFigures {
    pub fn of(all: &[Seen]) -> Self {
        let count = |holds: &dyn Fn(&Seen) -> bool| all.iter().filter(|seen| holds(seen)).count();
        let answered = || all.iter().filter(|seen| seen.outcome.is_answer());
        Self {
            buyers: all.len(),
            begun_first_s: count(&|seen| seen.begun <= SOON),
            opened_first_s: count(&|seen| seen.opened.is_some_and(|opened| opened <= SOON)),
            lateness: Waits::of(all.iter().map(|seen| seen.begun.saturating_sub(seen.due))),
            answered: answered().count(),
            answered_within_1s: answered().filter(|seen| seen.took <= SOON).count(),
            answers: Waits::of(answered().map(|seen| seen.took)),
            by_outcome: by_outcome(all.iter()),
            slowest: by_outcome(slowest(all).into_iter()),
            busy_answers: count(&|seen| seen.outcome.is_busy()),
            kept: count(&|seen| seen.kept == Some(true)),
            kept_asked: count(&|seen| seen.kept.is_some()),
        }
    }

    /// Buyers who got nothing.
    pub const fn unanswered(&self) -> usize {
        self.buyers - self.answered
    }

    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn within_1s_percent(&self) -> f64 {
        self.answered_within_1s as f64 * 100.0 / self.buyers.max(1) as f64
    }
}

fn slowest(all: &[Seen]) -> Vec<&Seen> {
    let mut slow: Vec<&Seen> = all.iter().collect();
    slow.sort_by_key(|seen| std::cmp::Reverse((!seen.outcome.is_answer(), seen.took)));
    slow.truncate(all.len().div_ceil(SLOWEST));
    slow
}

fn by_outcome<'a>(some: impl Iterator<Item = &'a Seen>) -> BTreeMap<String, Waits> {
    let mut waits: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    some.for_each(|seen| waits.entry(seen.outcome.name()).or_default().push(seen.took));
    waits.into_iter().map(|(name, waits)| (name, Waits::of(waits.into_iter()))).collect()
}

/// Outcomes in words, for people.
pub(super) fn words(outcomes: &BTreeMap<String, Waits>) -> String {
    let word = |(name, waits): (&String, &Waits)| format!("{name} × {} (to {:.0} ms)", waits.count, waits.max_ms);
    outcomes.iter().map(word).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ms: u64, outcome: RushOutcome) -> Seen {
        let (due, took) = (Duration::from_millis(10), Duration::from_millis(ms));
        Seen { due, begun: due + Duration::from_millis(2), opened: Some(due + took / 2), took, outcome, kept: None }
    }

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        let waits = |count: u64| Waits::of((1..=count).rev().map(Duration::from_millis));
        let at = |waits: Waits| (waits.p50_ms, waits.p99_ms, waits.max_ms);
        assert_eq!(at(waits(1_000)), (500.0, 990.0, 1_000.0));
        assert_eq!(at(waits(1)), (1.0, 1.0, 1.0));
        assert_eq!(at(waits(2)), (1.0, 2.0, 2.0));
        assert_eq!((waits(0).count, at(waits(0))), (0, (0.0, 0.0, 0.0)));
    }

    #[test]
    fn the_slowest_hundredth_begins_with_those_who_got_nothing() {
        let mut all: Vec<Seen> = (1..=295).map(|ms| seen(ms, RushOutcome::Status(410))).collect();
        all.extend((0..4).map(|n| seen(2_000 + n, RushOutcome::Status(503))));
        all.push(seen(1, RushOutcome::None("reset".into())));
        let figures = RushFigures::of(&all);
        assert_eq!(figures.slowest.keys().collect::<Vec<_>>(), ["503", "reset"], "3 of 300");
        let busy = figures.slowest["503"];
        assert_eq!((busy.count, busy.p50_ms, busy.max_ms), (2, 2_002.0, 2_003.0));
        assert_eq!(words(&figures.slowest), "503 × 2 (to 2003 ms), reset × 1 (to 1 ms)");
        assert_eq!(RushFigures::of(&all[..1]).slowest["410"].count, 1, "at least one");
        assert!(RushFigures::of(&[]).slowest.is_empty());
    }

    #[test]
    fn a_rush_is_measured_from_when_each_was_due() {
        let all = [
            seen(1_000, RushOutcome::Status(202)),
            seen(1_001, RushOutcome::Status(503)),
            Seen { opened: None, ..seen(3, RushOutcome::None("reset".into())) },
            Seen { kept: Some(true), ..seen(5, RushOutcome::Status(429)) },
            Seen { kept: Some(false), begun: Duration::from_secs(2), ..seen(5_000, RushOutcome::Status(410)) },
        ];
        let figures = RushFigures::of(&all);
        assert_eq!((figures.buyers, figures.answered, figures.unanswered()), (5, 4, 1));
        assert_eq!((figures.answered_within_1s, figures.within_1s_percent()), (2, 40.0));
        assert_eq!((figures.begun_first_s, figures.opened_first_s), (4, 3));
        assert_eq!((figures.lateness.p50_ms, figures.lateness.max_ms), (2.0, 1_990.0));
        assert_eq!((figures.busy_answers, figures.kept, figures.kept_asked), (2, 1, 2));
        assert_eq!(figures.answers.max_ms, 5_000.0, "who got nothing is not among the answers");
    }

    #[test]
    fn a_missing_answer_says_why() {
        let broken = |kind: ErrorKind| why(&HttpError::Broken(kind.into()));
        assert_eq!([broken(ErrorKind::ConnectionReset), broken(ErrorKind::Other)], ["reset", "connection broken"]);
        let connect = HttpError::Connect { address: String::new(), source: ErrorKind::TimedOut.into() };
        assert_eq!([why(&connect), why(&HttpError::Closed)], ["no connection in time", "closed without an answer"]);
    }
}
