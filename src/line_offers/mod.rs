//! Gives the units of sales to the next entries of their lines (W3, W4), and opens and shuts the door to clicks with it.
//!
//! Input: drawn raffles and waiting lists; the units that Redis has; what became of earlier offers. Output: purchases through P2 by the door
//! *line*, each under the request id that its entry has had since before; the states of entries, with events; the door. A crash leaves an
//! entry in hand, whose request the next step repeats, or a door that is shut further than the rows say, which the next step aligns.
//! Two leaders at once ask P2 for the same requests.
//!
//! A unit that comes back is offered by the next step. An entry that wants more units than there are is passed over, and keeps its rank.

mod door;
mod making;
mod raffle_order;
#[cfg(feature = "faults")]
pub mod single_steps;

use crate::domain::fault::{Fault, MayBeOutage, Progress};
use crate::domain::ids::SaleId;
use crate::domain::line::LineKind;
use crate::lines::list::ListFault;
use crate::lines::rows::{LineRows, SERVED_MAX, ServedLine};
use crate::p1_entry::request_ids::{NoRequestId, RequestIds};
use crate::p2_reserve::Reserve;
use crate::runtime::Worker;
use crate::sales::{SaleControl, SaleControlError};
use crate::store::mysql::DbError;
use crate::store::redis::RedisFault;
use making::Served;
use raffle_order::RaffleOrders;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Longest time between two reads of the lines: a unit that comes back is offered at most this late, and what that takes.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How long a line is left alone whose step failed.
const FAILED_PAUSE: Duration = Duration::from_secs(5);

/// Why a line could not be served.
#[derive(Debug, thiserror::Error)]
enum OfferFault {
    #[error("{0}")]
    Database(#[from] DbError),
    #[error("{0}")]
    Redis(#[from] RedisFault),
    #[error("{0}")]
    Sale(#[from] SaleControlError),
    #[error("{0}")]
    List(#[from] ListFault),
    #[error("{0}")]
    Ids(#[from] NoRequestId),
}

impl MayBeOutage for OfferFault {
    fn is_outage(&self) -> bool {
        match self {
            Self::Database(error) => error.is_outage(),
            Self::Redis(error) => error.is_outage(),
            Self::Sale(error) => error.is_outage(),
            Self::Ids(_) => true,
            Self::List(_) => false,
        }
    }
}

/// The worker of one process.
pub struct LineOffers {
    rows: LineRows,
    control: SaleControl,
    reserve: Reserve,
    ids: RequestIds,
    /// Whether this process leads P5: of several processes one is enough.
    leads: Arc<AtomicBool>,
    next_at: Instant,
    raffles: RaffleOrders,
    /// Of each line the request behind which its offers are compared with their orders next.
    followed: HashMap<SaleId, u64>,
    /// Lines that are left alone until a moment.
    pauses: HashMap<SaleId, Instant>,
}

impl LineOffers {
    /// A worker that acts while `leads` is set.
    #[must_use]
    pub fn new(
        (rows, control): (LineRows, SaleControl),
        reserve: Reserve,
        ids: RequestIds,
        leads: Arc<AtomicBool>,
    ) -> Self {
        let (raffles, next_at) = (RaffleOrders::new(rows.clone()), Instant::now());
        let (followed, pauses) = (HashMap::new(), HashMap::new());
        Self { rows, control, reserve, ids, leads, next_at, raffles, followed, pauses }
    }

    /// Does what there is to do for one line now. Returns how many entries moved.
    async fn serve(&mut self, line: &ServedLine) -> Result<usize, OfferFault> {
        let (mut moved, offered) = self.follow(&line.sale_id).await?;
        let Some(sale) = self.control.rows.sales.get(&line.sale_id).await? else { return Ok(moved) };
        let Served { moved: asked, undecided } = self.ask_again(&sale, &offered).await?;
        moved += asked;
        if line.is_over {
            if undecided == 0 && self.rows.end_line(&line.sale_id).await? {
                tracing::info!(phase = "p5_offers", sale = %line.sale_id, "the line is done, its sale is over");
            }
            return Ok(moved);
        }
        if !line.has_begun {
            return Ok(moved);
        }
        let Some(sale) = self.door_as_the_row_says(line, sale).await? else { return Ok(moved) };
        if !sale.by_line {
            // Of a raffle: no entry waits any more.
            if line.kind == LineKind::Raffle && moved == 0 {
                self.rows.end_line(&line.sale_id).await?;
            }
            return Ok(moved);
        }
        Ok(moved + self.offer(line, &sale).await?)
    }

    /// Serves every line once. A line whose step fails is left alone for a while; an outage ends the step.
    async fn serve_all(&mut self) -> Result<usize, Fault> {
        let (mut moved, mut after, now) = (0, None::<SaleId>, Instant::now());
        self.pauses.retain(|_, until| *until > now);
        loop {
            let page = self.rows.served_lines(after.as_ref()).await.map_err(Fault::back_off)?;
            let is_last = page.len() < SERVED_MAX;
            after = page.last().map(|line| line.sale_id.clone());
            for line in page {
                if !self.leads.load(Ordering::Relaxed) {
                    return Ok(moved);
                }
                if self.pauses.contains_key(&line.sale_id) {
                    continue;
                }
                match Box::pin(self.serve(&line)).await {
                    Ok(entries) => moved += entries,
                    Err(error) if error.is_outage() => return Err(Fault::back_off(error)),
                    Err(error) => {
                        // Of a sale that is frozen the rebuild comes first.
                        tracing::warn!(phase = "p5_offers", sale = %line.sale_id, %error, "a line cannot be served");
                        self.pauses.insert(line.sale_id, now + FAILED_PAUSE);
                    }
                }
            }
            if is_last {
                return Ok(moved);
            }
        }
    }
}

impl Worker for LineOffers {
    fn name(&self) -> &'static str {
        "p5_offers"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if !self.leads.load(Ordering::Relaxed) || Instant::now() < self.next_at {
            return Ok(Progress::Idle);
        }
        let moved = self.serve_all().await?;
        if moved > 0 {
            return Ok(Progress::Moved(moved));
        }
        self.next_at = Instant::now() + ASK_EVERY;
        Ok(Progress::Idle)
    }
}
