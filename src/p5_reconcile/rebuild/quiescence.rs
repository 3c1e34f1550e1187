//! Since when nothing was decided of a broken sale, and what its rebuild waits for.
//!
//! Input: what each attempt found. Output: whether the quiet time is over; a log line for each new reason to wait, and a gauge.
//! A crash forgets it: the next leader waits for the quiet time again.

use super::in_flight::WaitsFor;
use crate::domain::ids::SaleId;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

/// Remembers of each broken sale since when it has been quiescent, and what it waits for.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct QuiescenceTimer {
    since: HashMap<SaleId, (Instant, u64)>,
    waits: HashMap<SaleId, RebuildWaits>,
}

/// What a rebuild waits for.
#[derive(Debug)]
struct RebuildWaits {
    code: &'static str,
    /// Codes that were logged since the sale is broken: a message that circles would else be logged each time.
    logged: HashSet<&'static str>,
}

impl QuiescenceTimer {
    /// Whether the sale's decisions have been `decided_count` for `time`.
    pub(super) fn long_enough(&mut self, sale: &SaleId, decided_count: u64, time: Duration) -> bool {
        let entry = self.since.entry(sale.clone()).or_insert_with(|| (Instant::now(), decided_count));
        if entry.1 != decided_count {
            *entry = (Instant::now(), decided_count);
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

    /// Keeps what is known of these sales, which are broken, and forgets the others. Sets the gauge.
    pub(in crate::p5_reconcile) fn retain(&mut self, broken: &HashSet<SaleId>) {
        self.since.retain(|sale, _| broken.contains(sale));
        self.waits.retain(|sale, _| broken.contains(sale));
        for code in WaitsFor::CODES {
            let count = self.waits.values().filter(|waiting| waiting.code == code).count();
            metrics::gauge!("seckill_p5_reconcile_rebuild_waits_count", "for" => code).set(count as f64);
        }
    }
}
