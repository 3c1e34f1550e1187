//! A webhook as the leader works on it: what is loaded, what is under way, and when it is left alone.
//!
//! Input: due rows, results of tries. Output: what to send next, and what a result means for the row. A crash forgets all of it; the
//! rows are in the database.

use crate::config::ValueList;
use crate::events::webhooks::receiver::{Receiver, TryOutcome};
use crate::events::webhooks::rows::{DueDelivery, TriedDelivery};
use crate::faults::left_out;
use crate::runtime::lengthened;
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A receiver's wish to be left alone counts for a delivery up to this time.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(86_400);
/// And for all of its deliveries up to this time.
const LEFT_ALONE_MAX: Duration = Duration::from_secs(3600);
/// A receiver that is too busy and names no time is left alone for this one.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// One webhook.
pub(crate) struct WebhookEndpoint {
    pub(crate) name: String,
    pub(crate) receiver: Arc<Receiver>,
    /// Due, not begun; from one page.
    pub(crate) loaded: VecDeque<DueDelivery>,
    /// Under way, or not recorded yet.
    pub(crate) under_way: BTreeSet<u64>,
    /// When the database is read again.
    pub(crate) next_read_at: Instant,
    left_alone_until: Instant,
    /// It answered 410.
    pub(crate) is_disabled: bool,
}

/// A try that has ended.
pub(crate) struct EndedTry {
    /// Place of the webhook.
    pub(crate) endpoint: usize,
    pub(crate) delivery_id: u64,
    /// Tries before this one.
    pub(crate) attempts: u16,
    pub(crate) outcome: TryOutcome,
    pub(crate) took: Duration,
}

impl WebhookEndpoint {
    pub(crate) fn new(name: String, receiver: Receiver) -> Self {
        let now = Instant::now();
        Self {
            name,
            receiver: Arc::new(receiver),
            loaded: VecDeque::new(),
            under_way: BTreeSet::new(),
            next_read_at: now,
            left_alone_until: now,
            is_disabled: false,
        }
    }

    /// Forgets what is loaded and under way: another process may lead.
    pub(crate) fn stop_leading(&mut self) {
        self.loaded.clear();
        self.under_way.clear();
        self.next_read_at = Instant::now();
    }

    /// Whether anything may be sent to it now.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        !self.is_disabled && now >= self.left_alone_until
    }

    /// What follows from a try: for its row, and for this webhook.
    pub(crate) fn follow(&mut self, ended: &EndedTry, pauses: &ValueList<u64>, keep_s: u64) -> TriedDelivery {
        let (delivery_id, attempts) = (ended.delivery_id, ended.attempts);
        let (problem, retry_after) = match &ended.outcome {
            TryOutcome::Delivered => return TriedDelivery::Delivered { delivery_id, keep_s },
            TryOutcome::Gone => {
                if !left_out!(StopsWhenGone) {
                    self.is_disabled = true;
                    self.loaded.clear();
                }
                ("answers 410 Gone: nothing is sent until a replay, or another leader".to_owned(), None)
            }
            TryOutcome::Failed(failed) => {
                let alone = failed.retry_after.or_else(|| failed.is_busy.then_some(LEFT_ALONE));
                if let Some(alone) = alone {
                    let until = Instant::now() + alone.min(LEFT_ALONE_MAX);
                    self.left_alone_until = self.left_alone_until.max(until);
                }
                (failed.problem.clone(), failed.retry_after)
            }
        };
        let Some(pause_ms) = pauses.all().get(usize::from(attempts)) else {
            return TriedDelivery::Dead { delivery_id, attempts, problem };
        };
        let pause = lengthened(Duration::from_millis(*pause_ms));
        let pause = retry_after.map_or(pause, |asked| pause.max(asked.min(RETRY_AFTER_MAX)));
        let after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        TriedDelivery::Again { delivery_id, attempts, after_ms, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Layers, Settings};
    use crate::events::webhooks::receiver::FailedTry;

    fn endpoint() -> WebhookEndpoint {
        let webhook = serde_json::json!({ "name": "a", "url": "https://h/", "secrets": [], "events": [] });
        let webhook = serde_json::from_value(webhook).unwrap();
        let delivery = Settings::load(&Layers::default()).unwrap().webhook_delivery;
        WebhookEndpoint::new("a".into(), Receiver::new(&webhook, None, &delivery).unwrap())
    }

    fn ended(attempts: u16, outcome: TryOutcome) -> EndedTry {
        EndedTry { endpoint: 0, delivery_id: 7, attempts, outcome, took: Duration::ZERO }
    }

    fn failed(retry_after_s: Option<u64>, is_busy: bool) -> TryOutcome {
        let retry_after = retry_after_s.map(Duration::from_secs);
        TryOutcome::Failed(FailedTry { problem: "answers 500".into(), retry_after, is_busy })
    }

    #[test]
    fn pauses_follow_the_schedule_a_little_longer_and_then_it_is_dead() {
        let pauses: ValueList<u64> = serde_json::from_value(serde_json::json!([1000, 60_000])).unwrap();
        let mut endpoint = endpoint();
        for (attempts, low, high) in [(0, 1000, 1200), (1, 60_000, 72_000)] {
            let follow = endpoint.follow(&ended(attempts, failed(None, false)), &pauses, 9);
            let TriedDelivery::Again { after_ms, attempts: before, .. } = follow else { panic!("{follow:?}") };
            assert!((low..=high).contains(&after_ms), "{after_ms}");
            assert_eq!(before, attempts, "so that the same try counts once");
        }
        let last = endpoint.follow(&ended(2, failed(None, false)), &pauses, 9);
        assert_eq!(last, TriedDelivery::Dead { delivery_id: 7, attempts: 2, problem: "answers 500".into() });
        let delivered = endpoint.follow(&ended(2, TryOutcome::Delivered), &pauses, 9);
        assert_eq!(delivered, TriedDelivery::Delivered { delivery_id: 7, keep_s: 9 });
        assert!(endpoint.is_open(Instant::now()));
    }

    #[test]
    fn a_receiver_is_left_alone_as_it_asks_within_bounds() {
        let pauses: ValueList<u64> = serde_json::from_value(serde_json::json!([1000])).unwrap();
        let day = RETRY_AFTER_MAX.as_secs();
        for (asked_s, expected_s, alone_s) in [(30, 30, 30), (day * 7, day, LEFT_ALONE_MAX.as_secs())] {
            let mut endpoint = endpoint();
            let follow = endpoint.follow(&ended(0, failed(Some(asked_s), true)), &pauses, 9);
            let TriedDelivery::Again { after_ms, .. } = follow else { panic!("{follow:?}") };
            assert_eq!(after_ms, expected_s * 1000);
            let now = Instant::now();
            assert!(!endpoint.is_open(now + Duration::from_secs(alone_s - 1)));
            assert!(endpoint.is_open(now + Duration::from_secs(alone_s)));
        }
        let mut endpoint = endpoint();
        endpoint.follow(&ended(0, failed(None, true)), &pauses, 9);
        let now = Instant::now();
        assert!(!endpoint.is_open(now) && endpoint.is_open(now + LEFT_ALONE));
        endpoint.follow(&ended(0, TryOutcome::Gone), &pauses, 9);
        assert!(!endpoint.is_open(now + LEFT_ALONE_MAX), "not before it is opened");
    }
}
