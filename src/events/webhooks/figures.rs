//! Figures of the webhooks for operators, and the removal of rows that were delivered long ago.
//!
//! Input: the database, some times a minute. Output: gauges of the process that leads, and fewer rows. Both are read and done in a
//! task beside the sender: to count millions of rows takes its time, and a database that fell silent takes two minutes. A crash
//! leaves nothing.

use crate::events::webhooks::endpoint::EndedTry;
use crate::events::webhooks::receiver::TryOutcome;
use crate::events::webhooks::rows::WebhookRows;
use crate::events::webhooks::rows::{TriedDelivery, WebhookFigures};
use crate::store::mysql::DbError;
use futures::FutureExt;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use tokio_util::task::AbortOnDropHandle;

/// Pause between two readings of the figures.
const MEASURE: Duration = Duration::from_secs(5);
/// The same where no webhook is configured: there may be rows of earlier ones.
const MEASURE_NONE: Duration = Duration::from_secs(60);

/// Measuring pauses for this many times as long as it took, so that the database has the rest of the time for sending.
const SHARE: u32 = 10;

/// The words of `outcome`.
const OUTCOMES: [&str; 4] = ["delivered", "failed", "gone", "dead"];

/// Counts a try by what it came to.
pub(crate) fn count_try(webhook: &str, ended: &EndedTry, tried: &TriedDelivery) {
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
pub(crate) fn log_dead<'a>(webhook: &str, tried: impl Iterator<Item = &'a TriedDelivery>) {
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

/// What one reading found.
#[derive(Default)]
struct FiguresReading {
    /// None: they could not be read.
    found: Option<Vec<WebhookFigures>>,
    /// Old rows that are gone.
    removed: usize,
    took: Duration,
}

impl FiguresReading {
    /// Reads the figures and removes old rows. Trouble is logged.
    async fn at(webhooks: WebhookRows) -> Self {
        let (begun, mut reading) = (Instant::now(), Self::default());
        // Counting has a longer deadline.
        if let Err(error) = reading.read(&webhooks.patient()).await {
            tracing::warn!(phase = "p6_webhooks", %error, "the figures of the webhooks are not read");
            // Whatever was removed: a database in trouble gets the whole pause.
            reading.removed = 0;
        }
        reading.took = begun.elapsed();
        reading
    }

    async fn read(&mut self, webhooks: &WebhookRows) -> Result<(), DbError> {
        self.found = Some(webhooks.figures().await?);
        for webhook in webhooks.webhooks_with_rows().await? {
            self.removed += webhooks.delete_old(&webhook).await?;
        }
        Ok(())
    }
}

/// The gauges of one process.
pub(crate) struct WebhookGauges {
    /// The configured webhooks.
    names: BTreeSet<String>,
    next_at: Instant,
    /// The reading that is under way. It ends with this value.
    under_way: Option<AbortOnDropHandle<FiguresReading>>,
    /// Webhooks with waiting rows that are not configured, as they were logged last.
    unconfigured: BTreeSet<String>,
}

impl WebhookGauges {
    pub(crate) fn new(names: BTreeSet<String>) -> Self {
        for (name, outcome) in names.iter().flat_map(|name| OUTCOMES.map(|outcome| (name, outcome))) {
            let labels = [("webhook", name.clone()), ("outcome", outcome.to_owned())];
            metrics::counter!("seckill_p6_webhook_tries_total", &labels).increment(0);
        }
        Self { names, next_at: Instant::now(), under_way: None, unconfigured: BTreeSet::new() }
    }

    /// Shows what a reading has found, and begins the next one when it is time. Never waits: neither trouble with it nor the time that it
    /// takes must keep deliveries from being sent.
    pub(crate) fn measure(&mut self, webhooks: &WebhookRows, disabled: &[&str]) {
        let Some(under_way) = &mut self.under_way else {
            if Instant::now() >= self.next_at {
                self.under_way = Some(AbortOnDropHandle::new(tokio::spawn(FiguresReading::at(webhooks.clone()))));
            }
            return;
        };
        let Some(ended) = under_way.now_or_never() else { return };
        self.under_way = None;
        let reading = ended.unwrap_or_else(|error| {
            tracing::error!(phase = "p6_webhooks", %error, "reading the figures of the webhooks panicked");
            FiguresReading::default()
        });
        if let Some(found) = &reading.found {
            self.show(found, disabled);
        }
        // A full batch: there may be more.
        let pause = if self.names.is_empty() { MEASURE_NONE } else { MEASURE };
        let pause = if reading.removed > 0 { Duration::ZERO } else { pause };
        self.next_at = Instant::now() + pause.max(reading.took * SHARE);
    }

    /// Another process may lead: its figures count.
    pub(crate) fn stop_leading(&mut self) {
        self.under_way = None;
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
        let unconfigured: BTreeSet<String> = unknown.map(|of| of.webhook.clone()).collect();
        if unconfigured != self.unconfigured && !unconfigured.is_empty() {
            tracing::warn!(phase = "p6_webhooks", webhooks = ?unconfigured, rows = kept, "deliveries of webhooks that are not configured are kept, not sent");
        }
        self.unconfigured = unconfigured;
    }
}
