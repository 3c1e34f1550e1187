//! Tells of sales that ended and were never closed.
//!
//! Input: the table of sales. Output: a gauge. Nothing is changed: to close a sale is a person's word.

use super::audit::Auditor;
use crate::runtime::now_ms;
use crate::store::mysql::ended::ended_open;

impl Auditor {
    /// Counts them once a round. Trouble here keeps no sale from being repaired; the gauge stays as it was then.
    pub(super) async fn measure_ended(&self) {
        match ended_open(&self.db, now_ms()).await {
            Ok(found) => metrics::gauge!("seckill_p5_reconcile_ended_not_closed_count").set(found.count as f64),
            Err(error) => tracing::warn!(phase = "p5_reconcile", %error, "sales that ended cannot be counted"),
        }
    }
}
