//! The door of a sale with a line: shut to clicks before its waiting list takes entries, and opened only when no entry waits.
//!
//! Input: the line, its sale, and the units in Redis. Output: `by_line`, the door in Redis, the state of the line; in this order when it is shut,
//! and row before Redis when it is opened. So whatever crashes in between, clicks get no unit while somebody waits.

use super::{LineOffers, OfferFault};
use crate::domain::ids::SaleId;
use crate::domain::line::{LineKind, LineState};
use crate::domain::sale::{Sale, SaleStatus};
use crate::faults::{between_steps, crash_point, left_out};
use crate::lines::rows::ServedLine;

impl LineOffers {
    /// Makes the door in Redis what the row says, and opens a waiting list whose sale is sold out. Returns the sale if it sells on all shards by
    /// the terms of its row; `None`: it does not, and nothing is to be offered now.
    pub(super) async fn door_as_the_row_says(&self, line: &ServedLine, sale: Sale) -> Result<Option<Sale>, OfferFault> {
        let awaits = line.kind == LineKind::Waitlist && line.state == LineState::Awaited;
        if awaits && !sale.by_line {
            // A leader may have died between the row and Redis when clicks got the units again.
            if !self.begin_waitlist(&sale).await? {
                self.aligned(sale).await?;
            }
            return Ok(None);
        }
        if !awaits {
            return self.aligned(sale).await;
        }
        // Set again although it may be so: now every process that read the row before it said `by_line` has an older reading.
        if !left_out!(ClockAfterRow) {
            self.control.follow_row(&sale.sale_id).await?;
        }
        if !self.control.is_aligned(&sale).await? {
            return Ok(None);
        }
        crash_point!(DoorShut);
        between_steps("door: shut").await;
        if self.rows.open_waitlist(&sale).await? {
            tracing::info!(phase = "p5_offers", sale = %sale.sale_id, "the waiting list is open");
        }
        Ok(Some(sale))
    }

    /// Gives the units of a sale that is sold out to its waiting list; whether it did. The next step goes on with the door.
    async fn begin_waitlist(&self, sale: &Sale) -> Result<bool, OfferFault> {
        let is_sold_out = sale.status == SaleStatus::Warmed
            && self.control.redis.sale_keys.units_on_sale(&sale.sale_id).await? == Some(0);
        between_steps("offers: counted").await;
        if !is_sold_out || !self.rows.give_to_line(&sale.sale_id).await? {
            return Ok(false);
        }
        if left_out!(DoorBeforeLine)
            && let Some(given) = self.control.rows.sales.get(&sale.sale_id).await?
        {
            self.rows.open_waitlist(&given).await?;
        }
        crash_point!(GivenToLine);
        self.control.follow_row(&sale.sale_id).await?;
        Ok(true)
    }

    /// The sale, if it sells on every shard by the terms of its row; they are set first where they differ.
    async fn aligned(&self, sale: Sale) -> Result<Option<Sale>, OfferFault> {
        if self.control.is_aligned(&sale).await? {
            return Ok(Some(sale));
        }
        if sale.status != SaleStatus::Warmed {
            return Ok(None);
        }
        self.control.follow_row(&sale.sale_id).await?;
        let Some(sale) = self.control.rows.sales.get(&sale.sale_id).await? else { return Ok(None) };
        Ok(self.control.is_aligned(&sale).await?.then_some(sale))
    }

    /// Gives the units to clicks again, if no entry waits.
    pub(super) async fn open_to_clicks(&self, sale: &SaleId) -> Result<(), OfferFault> {
        between_steps("offers: reopens").await;
        if self.rows.give_to_clicks(sale).await? {
            crash_point!(GivenToClicks);
            tracing::info!(phase = "p5_offers", %sale, "no entry waits in the line: clicks get the units");
            self.control.follow_row(sale).await?;
        }
        Ok(())
    }
}
