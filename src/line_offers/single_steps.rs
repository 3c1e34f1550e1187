//! Single steps of offers, for the tests that play the model of lines against the code. Only with the feature `faults`.
//!
//! Each is what a pass of the worker does for one line, narrowed to the one entry that the model moves, and waits at the places between two
//! steps of the model. A crash leaves what a crash of the worker leaves.

use super::{LineOffers, OfferFault};
use crate::domain::ids::{EntryId, SaleId, UserId};
use crate::domain::line::{LineKind, LineState};
use crate::domain::sale::Sale;
use crate::lines::rows::{Entered, LeftLine, LineRows, NewEntry, ServedLine};
use crate::p1_entry::request_ids::RequestIds;
use crate::p2_reserve::Reserve;
use crate::sales::SaleControl;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Entries that a line of a test may have.
const ENTRIES_MAX: u64 = 1_000;

/// What each worker of a test works with.
#[derive(Clone)]
pub struct LineSteps {
    /// The rows of lines.
    pub(crate) rows: LineRows,
    /// What changes sales.
    pub(crate) control: SaleControl,
    /// The entrance to P2.
    pub(crate) reserve: Reserve,
    /// Of one process.
    pub(crate) ids: RequestIds,
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl LineSteps {
    fn worker(&self) -> LineOffers {
        let leads = Arc::new(AtomicBool::new(true));
        let (rows, control) = (self.rows.clone(), self.control.clone());
        LineOffers::new((rows, control), self.reserve.clone(), self.ids.clone(), leads)
    }

    async fn read(&self, id: &SaleId) -> Result<(ServedLine, Sale), String> {
        let lines = self.rows.served_lines(None).await.map_err(said)?;
        let line = lines.into_iter().find(|line| line.sale_id == *id).ok_or("the line is not served")?;
        let sale = self.control.rows.sales.get(id).await.map_err(said)?.ok_or("there is no such sale")?;
        Ok((line, sale))
    }

    /// Counts the units of a sale, and gives them to the entries that are next, or to its waiting list when there are none.
    ///
    /// # Errors
    /// What the worker would have logged.
    pub async fn offers(self, id: SaleId) -> Result<(), String> {
        let (line, sale) = self.read(&id).await?;
        let is_awaited = line.kind == LineKind::Waitlist && line.state == LineState::Awaited;
        let mut worker = self.worker();
        if is_awaited && !sale.by_line {
            return worker.door_as_the_row_says(&line, sale).await.map(drop).map_err(said);
        }
        worker.offer(&line, &sale).await.map(drop).map_err(said)
    }

    /// Asks P2 again for one entry: in hand, or offered and without an outcome for a while.
    ///
    /// # Errors
    /// The same.
    pub async fn asks_again(self, id: SaleId, entry: EntryId) -> Result<(), String> {
        let (_, sale) = self.read(&id).await?;
        let undecided = self.rows.followed_offers(&id, 0).await.map_err(said)?.undecided;
        let offered: Vec<EntryId> = undecided.into_iter().filter(|other| *other == entry).collect();
        self.worker().ask_about(&sale, &offered, Some(entry)).await.map(drop).map_err(said)
    }

    /// Compares one entry with the outcome and the order of its request.
    ///
    /// # Errors
    /// The same.
    pub async fn compares(self, id: SaleId, entry: EntryId) -> Result<(), String> {
        let (_, sale) = self.read(&id).await?;
        let worker = self.worker();
        let mut steps = self.rows.followed_offers(&id, 0).await.map_err(said)?.steps;
        steps.retain(|step| step.id == entry);
        if steps.is_empty() {
            return worker.ask_about(&sale, &[], Some(entry)).await.map(drop).map_err(said);
        }
        worker.take_followed(&id, &steps).await.map(drop).map_err(said)
    }

    /// Makes the door what the row says, and opens a waiting list behind it.
    ///
    /// # Errors
    /// The same.
    pub async fn sets_door(self, id: SaleId) -> Result<(), String> {
        let (line, sale) = self.read(&id).await?;
        self.worker().door_as_the_row_says(&line, sale).await.map(drop).map_err(said)
    }

    /// Makes Redis follow the row, as another process does that changes the sale.
    ///
    /// # Errors
    /// The same.
    pub async fn follows_row(self, id: SaleId) -> Result<(), String> {
        self.control.follow_row(&id).await.map_err(said)
    }

    /// A whole step of the worker for one line.
    ///
    /// # Errors
    /// The same.
    pub async fn serves(self, id: SaleId) -> Result<(), String> {
        let (line, _) = self.read(&id).await?;
        let served: Result<usize, OfferFault> = Box::pin(self.worker().serve(&line)).await;
        served.map(drop).map_err(said)
    }

    /// A buyer enters. `false`: the line does not take the entry.
    ///
    /// # Errors
    /// The database's.
    pub async fn enters(&self, sale: &SaleId, (id, user): (EntryId, &UserId), quantity: u32) -> Result<bool, String> {
        let entry = NewEntry { id, sale_id: sale.clone(), user: user.clone(), person: None, quantity };
        let entered = self.rows.enter(sale, &[entry], ENTRIES_MAX).await.map_err(said)?;
        Ok(matches!(entered[..], [Entered::Now(..)]))
    }

    /// A buyer leaves. `false`: the entry stays.
    ///
    /// # Errors
    /// The database's.
    pub async fn leaves(&self, sale: &SaleId, (id, user): (EntryId, &UserId)) -> Result<bool, String> {
        Ok(self.rows.leave(sale, id, user).await.map_err(said)? == LeftLine::Left)
    }

    /// The entries of a drawn raffle by rank.
    ///
    /// # Errors
    /// The database's.
    pub async fn by_rank(&self, sale: &SaleId) -> Result<Vec<EntryId>, String> {
        let mut worker = self.worker();
        let page = worker.raffles.page(sale, None).await.map_err(said)?;
        Ok(page.waiters.into_iter().map(|(_, waiter)| waiter.id).collect())
    }
}
