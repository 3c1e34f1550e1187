//! Offers: who is next, the purchase of each, and what became of it.
//!
//! Input: a line whose units go to it. Output: entries with requests, purchases through P2, and the steps of entries. A crash leaves entries in
//! hand: what P2 was asked is asked again under the same request id, whatever units there are.

use super::raffle_order::NextByRank;
use super::{LineOffers, OfferFault};
use crate::domain::ids::{EntryId, RequestId, SaleId};
use crate::domain::line::{EntryEvent, LineKind};
use crate::domain::request::Purchase;
use crate::domain::reserve::Reserved;
use crate::domain::sale::Sale;
use crate::domain::sale_door::SaleDoor;
use crate::domain::states::State;
use crate::faults::{between_steps, crash_point, left_out};
use crate::lines::rows::{EntryStep, LOST, OFFERS_MAX, ServedLine, Waiter};
use crate::p2_reserve::Decision;
use crate::sales::SaleControlError;
use crate::telemetry::count;
use futures::future::join_all;

/// Pages of entries that one step goes through for units that no entry in front wants.
const PAGES_MAX: usize = 40;

/// What a round of questions at P2 came to.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Served {
    /// Entries that moved.
    pub(super) moved: usize,
    /// Entries in hand of which P2 said neither yes nor no for good.
    pub(super) undecided: usize,
}

/// What P2's decision means for an entry in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// Its purchase is accepted.
    Made,
    /// Its buyer has all that the limit allows.
    PassedOver,
    /// It was not accepted, and may be later.
    NotNow,
    /// It was not accepted, and nothing of this sale will be.
    Over,
    /// It is not known.
    Unknown,
}

impl Verdict {
    fn of(decision: &Decision, request_id: RequestId) -> Self {
        match decision {
            Decision::Decided(Reserved::Accepted | Reserved::Replayed) => Self::Made,
            // The record of its own acceptance was trimmed, its buyer's was not.
            Decision::Decided(Reserved::DuplicateBuyer(first)) if *first == request_id => Self::Made,
            Decision::Decided(
                Reserved::DuplicateBuyer(_) | Reserved::LimitExceeded(_) | Reserved::DropLimitExceeded(_),
            ) => Self::PassedOver,
            Decision::Decided(Reserved::Closed | Reserved::Ended) => Self::Over,
            Decision::Decided(_) | Decision::AllEmpty | Decision::BucketEmpty => Self::NotNow,
            Decision::Unavailable | Decision::Overloaded => Self::NotNow,
            Decision::Unknown => Self::Unknown,
        }
    }
}

impl LineOffers {
    /// Compares a page of offers with their outcomes and orders. Returns how many moved, and those without an outcome for a while.
    pub(super) async fn follow(&mut self, sale: &SaleId) -> Result<(usize, Vec<EntryId>), OfferFault> {
        let after = self.followed.get(sale).copied().unwrap_or_default();
        let page = self.rows.followed_offers(sale, after).await?;
        self.followed.insert(sale.clone(), page.next_after);
        Ok((self.take_followed(sale, &page.steps).await?, page.undecided))
    }

    /// Asks P2 again for what is in hand, and for these offers: it may have been accepted before a crash, or without an answer; and Redis may
    /// have lost what it had accepted.
    pub(super) async fn ask_again(&self, sale: &Sale, offered: &[EntryId]) -> Result<Served, OfferFault> {
        self.ask_about(sale, offered, None).await
    }

    /// The same, about `only` this entry.
    pub(super) async fn ask_about(
        &self,
        sale: &Sale,
        offered: &[EntryId],
        only: Option<EntryId>,
    ) -> Result<Served, OfferFault> {
        let mut in_hand = self.rows.in_hand(&sale.sale_id).await?;
        in_hand.extend(self.rows.offered_of(&sale.sale_id, offered).await?);
        in_hand.retain(|waiter| only.is_none_or(|only| waiter.id == only));
        between_steps("offers: in hand").await;
        self.purchase(sale, in_hand).await
    }

    /// Gives the units that are there to the next entries; to clicks when no entry waits.
    pub(super) async fn offer(&mut self, line: &ServedLine, sale: &Sale) -> Result<usize, OfferFault> {
        let units = self.control.redis.sale_keys.units_on_sale(&sale.sale_id).await?;
        let units = units.and_then(|units| u64::try_from(units).ok()).unwrap_or_default();
        between_steps("offers: counted").await;
        if units == 0 {
            // A raffle is over for good when no entry waits; a waiting list takes entries as long as there is nothing to give.
            if line.kind == LineKind::Raffle {
                self.open_to_clicks(&sale.sale_id).await?;
            }
            return Ok(0);
        }
        let next = self.choose(line, units).await?;
        between_steps("offers: chosen").await;
        match next {
            Next::Empty => {
                self.open_to_clicks(&sale.sale_id).await?;
                Ok(0)
            }
            Next::Passed => Ok(0),
            Next::Chosen { steps, chosen } => {
                let passed = self.take(&sale.sale_id, &steps).await?;
                let in_hand = self.with_requests(&sale.sale_id, chosen).await?;
                between_steps("offers: written").await;
                Ok(passed + self.purchase(sale, in_hand).await?.moved)
            }
        }
    }

    /// The next entries for this many units.
    async fn choose(&mut self, line: &ServedLine, mut units: u64) -> Result<Next, OfferFault> {
        let (mut waits, mut is_all, mut steps, mut chosen) = (false, false, Vec::new(), Vec::new());
        let mut page = Page::First;
        for _ in 0..PAGES_MAX {
            let (mut waiters, next) = self.page(line, page).await?;
            if left_out!(RanksObeyed) {
                waiters.reverse();
            }
            for (rank, waiter) in waiters {
                waits = true;
                // Its turn has not come while there are no units.
                if waiter.is_blocked && units > 0 {
                    let reason = Some("BLOCKED".to_owned());
                    steps.push(EntryStep { id: waiter.id, event: EntryEvent::PassedOver, reason });
                } else if !waiter.is_blocked && u64::from(waiter.quantity.get()) <= units && chosen.len() < OFFERS_MAX {
                    units -= u64::from(waiter.quantity.get());
                    chosen.push((rank, waiter));
                }
            }
            let is_enough = units == 0 || chosen.len() >= OFFERS_MAX || steps.len() >= OFFERS_MAX;
            match next {
                Some(next) if !(waits && is_enough) => page = next,
                Some(_) | None => {
                    is_all = true;
                    break;
                }
            }
        }
        steps.truncate(OFFERS_MAX);
        Ok(match (steps.is_empty() && chosen.is_empty(), is_all && !waits) {
            (_, true) => Next::Empty,
            (true, false) => Next::Passed,
            (false, false) => Next::Chosen { steps, chosen },
        })
    }

    /// A page of entries that wait, in the order of ranks, and where the next one begins.
    async fn page(&mut self, line: &ServedLine, page: Page) -> Result<(Vec<(u32, Waiter)>, Option<Page>), OfferFault> {
        let sale = &line.sale_id;
        match (line.kind, page) {
            (LineKind::Raffle, page) => {
                let from = if let Page::At(at) = page { Some(at) } else { None };
                let NextByRank { waiters, next } = self.raffles.page(sale, from).await?;
                Ok((waiters, next.map(Page::At)))
            }
            (LineKind::Waitlist, page) => {
                let after = if let Page::Behind(rank) = page { rank } else { 0 };
                let waiters = self.rows.next_by_arrival(sale, after).await?;
                let is_last = waiters.len() < OFFERS_MAX;
                let ranked: Vec<(u32, Waiter)> =
                    waiters.into_iter().filter_map(|waiter| Some((waiter.rank?, waiter))).collect();
                let next = ranked.last().map(|(rank, _)| Page::Behind(*rank)).filter(|_| !is_last);
                Ok((ranked, next))
            }
        }
    }

    /// Writes a request into each of these entries; those that have one now, by whichever leader.
    async fn with_requests(&self, sale: &SaleId, chosen: Vec<(u32, Waiter)>) -> Result<Vec<Waiter>, OfferFault> {
        let mut requests = Vec::with_capacity(chosen.len());
        for (rank, waiter) in &chosen {
            requests.push((waiter.id, *rank, self.ids.next()?));
        }
        let own = |id: EntryId| requests.iter().find(|(entry, ..)| *entry == id).map(|(_, _, request)| *request);
        if left_out!(OfferRequestFirst) {
            let waiters = chosen.into_iter().map(|(_, waiter)| Waiter { request_id: own(waiter.id), ..waiter });
            return Ok(waiters.collect());
        }
        let written = self.rows.choose_requests(sale, &requests).await?;
        let waiters = chosen.into_iter().map(|(_, waiter)| waiter);
        Ok(waiters
            .filter_map(|waiter| Some(Waiter { request_id: Some(*written.get(&waiter.id)?), ..waiter }))
            .collect())
    }

    /// Purchases for entries in hand, and what follows.
    async fn purchase(&self, sale: &Sale, in_hand: Vec<Waiter>) -> Result<Served, OfferFault> {
        let decided = in_hand.into_iter().filter_map(|waiter| Some((waiter.request_id?, waiter)));
        let asked = decided.map(|(request_id, waiter)| async move {
            if waiter.is_decided && !left_out!(InHandCompared) {
                return (waiter.id, Verdict::Made);
            }
            let purchase = Purchase {
                request_id,
                sale_id: sale.sale_id.clone(),
                user_id: waiter.user,
                person: waiter.person,
                quantity: waiter.quantity,
            };
            let decision = self.reserve.decide(purchase, sale.epoch, SaleDoor::Line).await;
            (waiter.id, Verdict::of(&decision, request_id))
        });
        let verdicts = join_all(asked).await;
        if verdicts.is_empty() {
            return Ok(Served::default());
        }
        crash_point!(OfferDecided);
        between_steps("offers: asked").await;
        let steps: Vec<EntryStep> = verdicts
            .iter()
            .filter_map(|(id, verdict)| match verdict {
                Verdict::Made => Some(EntryStep { id: *id, event: EntryEvent::OfferMade, reason: None }),
                Verdict::PassedOver => {
                    let reason = Some("LIMIT".to_owned());
                    Some(EntryStep { id: *id, event: EntryEvent::PassedOver, reason })
                }
                // Of an entry that waits nothing follows.
                Verdict::Over => {
                    let reason = Some(LOST.to_owned());
                    Some(EntryStep { id: *id, event: EntryEvent::OfferLapsed, reason })
                }
                Verdict::NotNow | Verdict::Unknown => None,
            })
            .collect();
        #[cfg(feature = "faults")]
        if left_out!(OfferRequestKept) {
            let short = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::NotNow).map(|(id, _)| *id);
            self.rows.clear_requests(&sale.sale_id, &short.collect::<Vec<_>>()).await?;
        }
        let is_open = |verdict: &Verdict| matches!(verdict, Verdict::NotNow | Verdict::Unknown);
        let undecided = verdicts.iter().filter(|(_, verdict)| is_open(verdict)).count();
        Ok(Served { moved: self.take(&sale.sale_id, &steps).await?, undecided })
    }

    /// Takes the steps that follow from outcomes and orders. The units of those that lapsed come back with their orders.
    pub(super) async fn take_followed(&self, sale: &SaleId, steps: &[EntryStep]) -> Result<usize, OfferFault> {
        if left_out!(LapsedOnce) {
            for step in steps.iter().filter(|step| step.event == EntryEvent::OfferLapsed) {
                let name = format!("lapsed-{}", step.id);
                self.control.rows.grants.top_up(sale, &name, 1).await.map_err(SaleControlError::from)?;
                self.control.give_one(sale, &name).await?;
            }
        }
        self.take(sale, steps).await
    }

    /// Takes steps of entries, and counts them.
    async fn take(&self, sale: &SaleId, steps: &[EntryStep]) -> Result<usize, OfferFault> {
        let changed = self.rows.take_steps(sale, steps).await?;
        for (state, entries) in &changed {
            count(State::P6(state.state()), *entries);
        }
        Ok(changed.iter().map(|(_, entries)| entries).sum())
    }
}

/// Where a page begins.
#[derive(Debug, Clone, Copy)]
enum Page {
    /// With the first entry that may wait.
    First,
    /// At a place in the order of a raffle.
    At(usize),
    /// Behind a rank of a waiting list.
    Behind(u32),
}

/// Who gets the units.
enum Next {
    /// No entry waits.
    Empty,
    /// Each that waits wants more units than there are.
    Passed,
    /// These, by rank; and those that get nothing.
    Chosen {
        /// What follows for those.
        steps: Vec<EntryStep>,
        chosen: Vec<(u32, Waiter)>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_is_made_when_its_own_request_was_accepted_and_by_no_other() {
        let (own, other) = (RequestId::new(7).unwrap(), RequestId::new(8).unwrap());
        let verdict = |decision: Decision| Verdict::of(&decision, own);
        assert_eq!(verdict(Decision::Decided(Reserved::Replayed)), Verdict::Made);
        assert_eq!(verdict(Decision::Decided(Reserved::DuplicateBuyer(own))), Verdict::Made);
        assert_eq!(verdict(Decision::Decided(Reserved::DuplicateBuyer(other))), Verdict::PassedOver);
        assert_eq!(verdict(Decision::Decided(Reserved::Ended)), Verdict::Over);
        assert_eq!(verdict(Decision::AllEmpty), Verdict::NotNow);
        assert_eq!(verdict(Decision::Unknown), Verdict::Unknown);
    }
}
