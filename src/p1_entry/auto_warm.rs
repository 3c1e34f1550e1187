//! Warm-ups that nobody has to think of (A7): drafts ahead of their start, and what a crash left unfinished.
//!
//! Input: the list of sales. Output: calls of the [`SaleControl`], all of which can be repeated; a crash leaves nothing behind.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::domain::sale::SaleStatus;
use crate::runtime::{Worker, now_ms};
use crate::sales::{SaleControl, SaleControlError};
use crate::store::mysql::sales;
use crate::store::redis::RedisFault;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Sales that are warmed already are looked after this often; drafts that wait for their start every second.
const LOOK_AFTER: Duration = Duration::from_secs(10);

/// Warms drafts ahead of their start and finishes what a crash left between database and Redis. Part of the api role; it
/// may run in every api process, because all it does can be repeated.
pub struct AutoWarm {
    /// Does the work.
    pub sale_control: SaleControl,
    /// How long before its start a draft is warmed, milliseconds; 0: never by itself.
    pub ahead_ms: i64,
    /// Sales whose trouble was reported; told once, not every second.
    pub told: HashSet<SaleId>,
    /// When warmed sales are looked after next.
    pub look_after_at: Instant,
}

impl Worker for AutoWarm {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let now = now_ms();
        let look_after = Instant::now() >= self.look_after_at;
        if look_after {
            self.look_after_at = Instant::now() + LOOK_AFTER;
        }
        for sale in sales::unfinished(&self.sale_control.db, now).await.map_err(Fault::back_off)? {
            let due = match sale.status {
                SaleStatus::Draft => self.ahead_ms > 0 && sale.starts_at_ms - self.ahead_ms <= now,
                SaleStatus::Warmed | SaleStatus::Paused => look_after,
                SaleStatus::Closed => false,
            };
            if !due {
                continue;
            }
            match self.sale_control.warm(&sale.sale_id).await {
                Ok(()) => {
                    self.told.remove(&sale.sale_id);
                }
                Err(SaleControlError::Redis(
                    fault @ (RedisFault::NotSent(_) | RedisFault::Unknown(_) | RedisFault::NoScript),
                )) => {
                    return Err(Fault::back_off(fault));
                }
                Err(SaleControlError::Database(error)) => return Err(Fault::back_off(error)),
                // Whatever else is wrong is wrong with this sale; the ones behind it must not wait.
                Err(error) if self.told.insert(sale.sale_id.clone()) => {
                    tracing::error!(phase = "p1_entry", sale = %sale.sale_id, %error, "sale stays closed");
                }
                Err(_) => {}
            }
        }
        Ok(Progress::Idle)
    }
}
