//! Since when nothing was decided of a broken sale and nothing of it was sent back, and what its rebuild waits for.
//!
//! Input: what each attempt found, and the watch over the retry queues, which is there while a sale is broken. Output: whether the
//! quiet time is over; a log line for each new reason to wait, and a gauge. A crash forgets it: the next leader waits for the quiet
//! time again.

use super::in_flight::WaitsFor;
use crate::domain::ids::SaleId;
use crate::store::rabbit::{RabbitConfig, RabbitError, RetryWatch, SeenOfSale};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// A watch that has begun gets this long for what is in the queues already. A message that comes later is seen as well, and begins
/// the quiet time again.
const FIRST_MESSAGES: Duration = Duration::from_millis(100);

/// Remembers of each broken sale since when it has been quiescent, and what it waits for.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct QuiescenceTimer {
    since: HashMap<SaleId, (Instant, QuietMark)>,
    waits: HashMap<SaleId, RebuildWaits>,
    watch: Option<Arc<RetryWatch>>,
}

/// What does not change while nothing of a sale happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuietMark {
    /// Requests of it that have their outcome.
    pub(super) decided_count: u64,
    /// What went through the retry queues; `None` only without the mechanism `RetriesWatched`.
    pub(super) seen: Option<SeenOfSale>,
}

/// What a rebuild waits for.
#[derive(Debug)]
struct RebuildWaits {
    code: &'static str,
    /// Codes that were logged since the sale is broken: a message that circles would else be logged each time.
    logged: HashSet<&'static str>,
}

impl QuiescenceTimer {
    /// With a watch that is there already.
    #[cfg(feature = "faults")]
    pub(in crate::p5_reconcile) fn watching(watch: Option<Arc<RetryWatch>>) -> Self {
        Self { watch, ..Self::default() }
    }

    /// The watch over the retry queues; begins one when there is none.
    ///
    /// # Errors
    /// Why it cannot begin.
    pub(in crate::p5_reconcile) async fn watch(
        &mut self,
        rabbit: &RabbitConfig,
    ) -> Result<Arc<RetryWatch>, RabbitError> {
        let watch = match self.watch.take() {
            Some(watch) if !watch.has_ended() => watch,
            Some(_) | None => {
                let begun = RetryWatch::start(rabbit).await?;
                sleep(FIRST_MESSAGES).await;
                Arc::new(begun)
            }
        };
        Ok(Arc::clone(self.watch.insert(watch)))
    }

    /// Whether nothing of the sale has happened for `time`.
    pub(super) fn long_enough(&mut self, sale: &SaleId, mark: QuietMark, time: Duration) -> bool {
        let entry = self.since.entry(sale.clone()).or_insert_with(|| (Instant::now(), mark));
        if entry.1 != mark {
            *entry = (Instant::now(), mark);
        }
        entry.0.elapsed() >= time
    }

    pub(super) fn reset(&mut self, sale: &SaleId) {
        self.since.remove(sale);
    }

    /// Notes what a rebuild waits for. Each kind of reason is logged once; the quiet time belongs to every rebuild.
    pub(super) fn waits(&mut self, sale: &SaleId, reason: &WaitsFor) {
        let code = reason.code();
        let waiting = self.waits.entry(sale.clone()).or_insert_with(|| RebuildWaits { code, logged: HashSet::new() });
        waiting.code = code;
        if *reason != WaitsFor::Quiet && waiting.logged.insert(code) {
            tracing::warn!(phase = "p5_reconcile", %sale, "the sale is stopped, its rebuild waits for {reason}");
        }
    }

    /// Keeps what is known of these sales, which are broken, and forgets the others. Sets the gauge. Without any the retry queues are
    /// not watched any more.
    pub(in crate::p5_reconcile) async fn retain(&mut self, broken: &HashSet<SaleId>) {
        self.since.retain(|sale, _| broken.contains(sale));
        self.waits.retain(|sale, _| broken.contains(sale));
        let over = self.watch.take_if(|_| broken.is_empty());
        if let Some(watch) = over.and_then(Arc::into_inner) {
            watch.close().await;
        }
        for code in WaitsFor::CODES {
            let count = self.waits.values().filter(|waiting| waiting.code == code).count();
            metrics::gauge!("seckill_p5_reconcile_rebuild_waits_count", "for" => code).set(count as f64);
        }
    }

    /// Another process leads, or may: it watches, and only one may.
    pub(in crate::p5_reconcile) async fn end(&mut self) {
        if self.watch.is_some() || !self.waits.is_empty() {
            self.retain(&HashSet::new()).await;
        }
    }
}
