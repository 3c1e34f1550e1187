//! Figures of the webhooks for operators, and the removal of rows that were delivered long ago.
//!
//! Input: the database, some times a minute. Output: gauges of the process that leads, and fewer rows. A crash leaves nothing.

use super::endpoint::EndedTry;
use super::receiver::TryOutcome;
use crate::store::mysql::webhooks::{self, TriedDelivery, WebhookFigures};
use crate::store::mysql::{Db, DbError};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Pause between two looks at the figures.
const MEASURE: Duration = Duration::from_secs(5);
/// The same where no webhook is configured: there may be rows of earlier ones.
const MEASURE_NONE: Duration = Duration::from_secs(60);

/// Measuring pauses for this many times as long as it took, so that the rest of the time is for sending.
const SHARE: u32 = 10;

/// The words of `outcome`.
const OUTCOMES: [&str; 4] = ["delivered", "failed", "gone", "dead"];

/// Counts a try by what it came to.
pub(super) fn count_try(webhook: &str, ended: &EndedTry, tried: &TriedDelivery) {
    let outcome = match (&ended.outcome, tried) {
        (TryOutcome::Delivered, _) => "delivered",
        (TryOutcome::Gone, _) => "gone",
        (TryOutcome::Failed(_), TriedDelivery::Dead { .. }) => "dead",
        (TryOutcome::Failed(_), TriedDelivery::Again { .. } | TriedDelivery::Delivered { .. }) => "failed",
    };
    let webhook = webhook.to_owned();
    metrics::counter!("seckill_p6_webhook_tries_total", "webhook" => webhook.clone(), "outcome" => outcome)
        .increment(1);
    metrics::histogram!("seckill_p6_webhook_seconds", "webhook" => webhook).record(ended.took);
}

/// One line for the deliveries of a webhook that died together.
pub(super) fn log_dead<'a>(webhook: &str, tried: impl Iterator<Item = &'a TriedDelivery>) {
    let dead = tried.filter_map(|tried| match tried {
        TriedDelivery::Dead { delivery_id, problem, .. } => Some((delivery_id, problem)),
        TriedDelivery::Delivered { .. } | TriedDelivery::Again { .. } => None,
    });
    let dead: Vec<_> = dead.collect();
    if let Some((first, problem)) = dead.first() {
        tracing::error!(
            phase = "p6_webhooks",
            webhook,
            dead = dead.len(),
            first,
            problem,
            "deliveries are dead: seckill webhook list --dead"
        );
    }
}

/// The gauges of one process.
pub(super) struct WebhookGauges {
    /// The configured webhooks.
    names: BTreeSet<String>,
    next_at: Instant,
    /// Webhooks with waiting rows that are not configured, as they were logged last.
    strangers: BTreeSet<String>,
}

impl WebhookGauges {
    pub(super) fn new(names: BTreeSet<String>) -> Self {
        for (name, outcome) in names.iter().flat_map(|name| OUTCOMES.map(|outcome| (name, outcome))) {
            let labels = [("webhook", name.clone()), ("outcome", outcome.to_owned())];
            metrics::counter!("seckill_p6_webhook_tries_total", &labels).increment(0);
        }
        Self { names, next_at: Instant::now(), strangers: BTreeSet::new() }
    }

    /// Measures and removes, when it is time. Trouble with it must not keep deliveries from being sent.
    pub(super) async fn measure(&mut self, db: &Db, disabled: &[&str]) {
        let now = Instant::now();
        if now < self.next_at {
            return;
        }
        // Counting millions of rows takes its time, and a longer deadline.
        let removed = match self.look(db.patient(), disabled).await {
            Ok(removed) => removed,
            Err(error) => {
                tracing::warn!(phase = "p6_webhooks", %error, "the figures of the webhooks are not read");
                0
            }
        };
        // A full batch: there may be more.
        let pause = if self.names.is_empty() { MEASURE_NONE } else { MEASURE };
        let pause = if removed > 0 { Duration::ZERO } else { pause };
        self.next_at = Instant::now() + pause.max(now.elapsed() * SHARE);
    }

    /// Shows the figures and removes old rows. Returns how many.
    async fn look(&mut self, db: &Db, disabled: &[&str]) -> Result<usize, DbError> {
        let found = webhooks::figures(db).await?;
        self.show(&found, disabled);
        let mut removed = 0;
        for webhook in webhooks::webhooks_with_rows(db).await? {
            removed += webhooks::delete_old(db, &webhook).await?;
        }
        Ok(removed)
    }

    fn show(&mut self, found: &[WebhookFigures], disabled: &[&str]) {
        for name in &self.names {
            let of = found.iter().find(|of| of.webhook == *name);
            let (waiting, oldest_ms, dead) = of.map_or((0, 0, 0), |of| (of.waiting, of.oldest_ms, of.dead));
            let gauge = |gauge: metrics::Gauge, value: f64| gauge.set(value);
            let is_disabled = if disabled.contains(&name.as_str()) { 1.0 } else { 0.0 };
            gauge(metrics::gauge!("seckill_p6_webhook_waiting_count", "webhook" => name.clone()), waiting as f64);
            gauge(
                metrics::gauge!("seckill_p6_webhook_oldest_seconds", "webhook" => name.clone()),
                oldest_ms as f64 / 1000.0,
            );
            gauge(metrics::gauge!("seckill_p6_webhook_dead_count", "webhook" => name.clone()), dead as f64);
            gauge(metrics::gauge!("seckill_p6_webhook_disabled", "webhook" => name.clone()), is_disabled);
        }
        let unknown = found.iter().filter(|of| of.waiting + of.dead > 0 && !self.names.contains(&of.webhook));
        let kept: i64 = unknown.clone().map(|of| of.waiting + of.dead).sum();
        metrics::gauge!("seckill_p6_webhook_unconfigured_count").set(kept as f64);
        let strangers: BTreeSet<String> = unknown.map(|of| of.webhook.clone()).collect();
        if strangers != self.strangers && !strangers.is_empty() {
            tracing::warn!(phase = "p6_webhooks", webhooks = ?strangers, rows = kept, "deliveries of webhooks that are not configured are kept, not sent");
        }
        self.strangers = strangers;
    }
}
