//! Announces what became of sales: opened, paused, resumed, sold out, back, ended, closed.
//!
//! Input: what was announced of each sale last, its row, and Redis' units. Output: events for the exchange and the webhooks, each written in
//! the transaction that says that it was announced. A crash leaves both or neither, and the next check announces what is so then; so a state
//! is announced that lasts from one check to the next, and a shorter one may be missed. Two processes that check at once announce once.

use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::SaleId;
use crate::events::rows::sale::{AnnouncedSale, AnnouncementRows, PAGE_MAX};
use crate::runtime::Worker;
use crate::store::redis::SaleKeys;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time between two checks of the sales.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// The worker of one process.
pub struct Announcer {
    rows: AnnouncementRows,
    sale_keys: SaleKeys,
    /// Whether this process leads P5: of several processes one is enough.
    leads: Arc<AtomicBool>,
    next_at: Instant,
    /// Redis did not answer, in this check or in the one before.
    is_redis_silent: bool,
}

impl Announcer {
    /// A worker that checks while `leads` is set.
    #[must_use]
    pub fn new(rows: AnnouncementRows, sale_keys: SaleKeys, leads: Arc<AtomicBool>) -> Self {
        Self { rows, sale_keys, leads, next_at: Instant::now(), is_redis_silent: false }
    }

    /// Adds the units to what is so of a sale. Once Redis does not answer, the other sales of this check go without: each would wait for it.
    async fn complete(&mut self, sale: &mut AnnouncedSale, is_silent: &mut bool) {
        if *is_silent || !sale.moment.needs_units() {
            return;
        }
        match self.sale_keys.units_on_sale(&sale.sale_id).await {
            Ok(units) => sale.moment.units = units,
            Err(error) => {
                *is_silent = true;
                if !self.is_redis_silent {
                    tracing::warn!(phase = "p5_announcer", %error, "whether sales are sold out is not known");
                }
            }
        }
    }

    /// Announces what is so of the sales that are not closed. Returns how many events, and the milliseconds until the clock changes one.
    async fn check(&mut self) -> Result<(usize, Option<u64>), Fault> {
        let (mut announced, mut next_in_ms, mut is_silent) = (0, None, false);
        let mut after: Option<SaleId> = None;
        loop {
            let page = self.rows.selling(after.as_ref()).await.map_err(Fault::back_off)?;
            let is_full = page.len() >= PAGE_MAX;
            after = page.last().map(|sale| sale.sale_id.clone());
            for mut sale in page {
                if !self.leads.load(Ordering::Relaxed) {
                    return Ok((announced, next_in_ms));
                }
                self.complete(&mut sale, &mut is_silent).await;
                announced += self.rows.announce(&sale).await.map_err(Fault::back_off)?;
                next_in_ms = sale.next_in_ms().into_iter().chain(next_in_ms).min();
            }
            if !is_full {
                break;
            }
        }
        self.is_redis_silent = is_silent;
        Ok((announced, next_in_ms))
    }

    /// Announces the close of those that are.
    async fn check_closed(&self) -> Result<usize, Fault> {
        let mut announced = 0;
        for sale in self.rows.closed().await.map_err(Fault::back_off)? {
            announced += self.rows.announce(&sale).await.map_err(Fault::back_off)?;
        }
        Ok(announced)
    }
}

impl Worker for Announcer {
    fn name(&self) -> &'static str {
        "p5_announcer"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.leads.load(Ordering::Relaxed) || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        let (of_selling, next_in_ms) = self.check().await?;
        let announced = of_selling + self.check_closed().await?;
        let pause = next_in_ms.map_or(CHECK_EVERY, Duration::from_millis).min(CHECK_EVERY);
        self.next_at = Instant::now() + pause;
        if announced == 0 {
            return Ok(Progress::Idle);
        }
        tracing::info!(phase = "p5_announcer", announced, "events of sales are written");
        Ok(Progress::Moved(announced))
    }
}
