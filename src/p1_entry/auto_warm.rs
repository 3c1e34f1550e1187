//! Automatic warm-ups (A7): drafts ahead of their start, and warm-ups that a crash left unfinished.
//!
//! Input: the list of sales. Output: calls of the [`SaleControl`], all of which can be repeated; a crash leaves nothing behind.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::runtime::{Worker, now_ms};
use crate::sales::{SaleControl, SaleControlError};
use crate::store::redis::RedisFault;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Sales that are warmed already are checked this often; drafts that wait for their start every second.
const CHECK_EVERY: Duration = Duration::from_secs(10);

/// A sale is checked for this long after its end, milliseconds: an end that was moved to the next moment, by a process that died
/// before Redis had it, is followed by then.
const CHECKED_AFTER_END_MS: i64 = 60_000;

/// Warms drafts ahead of their start and finishes what a crash left between database and Redis. Part of the api role; it
/// may run in every api process, because all it does can be repeated.
pub(crate) struct AutoWarm {
    sale_control: SaleControl,
    /// How long before its start a draft is warmed, milliseconds; 0: never by itself.
    ahead_ms: i64,
    /// Sales whose trouble was logged: once, not every second.
    reported: HashSet<SaleId>,
    /// When warmed sales are checked next.
    check_at: Instant,
}

impl AutoWarm {
    /// Warms drafts `ahead_ms` before their start; 0: never by itself.
    #[must_use]
    pub(crate) fn new(sale_control: SaleControl, ahead_ms: u64) -> Self {
        let ahead_ms = i64::try_from(ahead_ms).unwrap_or(i64::MAX);
        Self { sale_control, ahead_ms, reported: HashSet::new(), check_at: Instant::now() }
    }
}

impl Worker for AutoWarm {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let now = now_ms();
        let check_due = Instant::now() >= self.check_at;
        if check_due {
            self.check_at = Instant::now() + CHECK_EVERY;
        }
        let checked = self.sale_control.rows.sales.unfinished(now - CHECKED_AFTER_END_MS).await;
        for sale in checked.map_err(Fault::back_off)? {
            let due = match sale.status {
                SaleStatus::Draft if sale.ends_at_ms <= now => false,
                SaleStatus::Draft => self.ahead_ms > 0 && sale.starts_at_ms - self.ahead_ms <= now,
                SaleStatus::Warmed | SaleStatus::Paused => check_due,
                SaleStatus::Closed => false,
            };
            if !due {
                continue;
            }
            match self.sale_control.warm(&sale.sale_id).await {
                Ok(()) => {
                    self.reported.remove(&sale.sale_id);
                }
                Err(SaleControlError::Redis(
                    fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_) | RedisFault::NoScript),
                )) => {
                    return Err(Fault::back_off(fault));
                }
                Err(SaleControlError::Database(error)) => return Err(Fault::back_off(error)),
                // Any other error concerns this sale only; the sales behind it must not wait.
                Err(error) if self.reported.insert(sale.sale_id.clone()) => {
                    tracing::error!(phase = "p1_entry", sale = %sale.sale_id, %error, "sale stays closed");
                }
                Err(_) => {}
            }
        }
        Ok(Progress::Idle)
    }
}
