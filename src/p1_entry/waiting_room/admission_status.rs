//! A buyer at the waiting room: takes a place, and asks how many places before it are not released.
//!
//! Input: a buyer and a sale, later with the ticket. Output: [`AdmissionStatus`]. A crash leaves the place in Redis.

use super::arrivals::Arrival;
use super::rooms::{WaitingRooms, unavailable};
use crate::domain::ids::{SaleId, UserId};
use crate::domain::room::{ReleaseProgress, come_back_s};
use crate::domain::states::{P1Entry, State};
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::block_list::BuyerChecks;
use crate::p1_entry::catalog::{Catalog, SaleView};
use crate::p1_entry::entitlement::ShownFacts;
use crate::runtime::now_ms;
use crate::store::redis::RoomPlace;
use crate::telemetry::count;
use std::sync::Arc;

/// A buyer who finds the room full is asked to come back after this time, seconds: it only empties at the sale's end.
const FULL_RETRY_S: u64 = 60;

/// How far a buyer has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AdmissionStatus {
    /// The place and its ticket; `None` before the places are drawn.
    pub place: Option<(u64, String)>,
    /// Whether the buyer may buy.
    pub released: bool,
    /// Places before this one that are not released.
    pub ahead: Option<u64>,
    /// Seconds until it is released, at the pace of the last half minute; `None`: not known.
    pub(crate) estimated_wait_s: Option<u64>,
    /// When to ask again, seconds; `None` once released.
    pub(crate) ask_again_s: Option<u64>,
}

/// Where buyers take places and ask for them. One a process.
pub struct RoomEntrance {
    catalog: Catalog,
    buyers: BuyerChecks,
    rooms: WaitingRooms,
}

impl RoomEntrance {
    /// Puts the parts together.
    #[must_use]
    pub(crate) const fn new(catalog: Catalog, buyers: BuyerChecks, rooms: WaitingRooms) -> Self {
        Self { catalog, buyers, rooms }
    }

    /// Takes a place in the room of a sale; coming again changes nothing.
    pub(crate) async fn enter(
        &self,
        (user, shown): (&UserId, Option<&ShownFacts>),
        sale: &SaleId,
    ) -> Result<AdmissionStatus, Problem> {
        let view = self.with_room(sale).await?;
        let blocked = self.buyers.blocks.refusal(user, now_ms());
        if let Some(problem) = blocked.or_else(|| self.buyers.entitlements.refusal(&view.sale, user, shown)) {
            return Err(problem);
        }
        self.buyers.limits.take(user).await?;
        let known = self.rooms.state_of(&view).await?;
        let asked = self.rooms.arrivals.ask(Arrival { view: view.clone(), user: user.clone() }).await;
        let entered = asked.map_err(|busy| Kind::Unavailable.because(busy.to_string()))?;
        let (arrivals, place) = entered.map_err(|error| unavailable(&error))?;
        match place {
            RoomPlace::Place(place) => {
                let ticket = self.rooms.tickets.sign(user, sale, place).ok_or(Problem::from(Kind::Internal))?;
                let progress = known.progress();
                Ok(self
                    .status((place, ticket), ReleaseProgress { arrivals: arrivals.max(progress.arrivals), ..progress }))
            }
            RoomPlace::Undrawn => {
                let starts_in_ms = view.sale.starts_at_ms.saturating_sub(now_ms()).max(0).unsigned_abs();
                let ask_again_s = Some(come_back_s(starts_in_ms, arrivals, rand::random()));
                Ok(AdmissionStatus { place: None, released: false, ahead: None, estimated_wait_s: None, ask_again_s })
            }
            RoomPlace::Full => {
                metrics::counter!("seckill_p1_entry_room_full_total").increment(1);
                Err(Kind::RoomFull
                    .because_both(format!("{arrivals} are waiting"), format!("{arrivals} 人正在排队"))
                    .retry_after_s(FULL_RETRY_S))
            }
        }
    }

    /// How many places before the one on a ticket are not released. Asks no server.
    pub(crate) async fn position(
        &self,
        user: &UserId,
        sale: &SaleId,
        ticket: Option<&str>,
    ) -> Result<AdmissionStatus, Problem> {
        let view = self.with_room(sale).await?;
        let (place, progress) = self.rooms.position_of(&view, user, ticket).await?;
        Ok(self.status((place, ticket.unwrap_or_default().to_owned()), progress))
    }

    fn status(&self, place: (u64, String), progress: ReleaseProgress) -> AdmissionStatus {
        let released = progress.has_released(place.0);
        AdmissionStatus {
            released,
            ahead: Some(progress.ahead_of(place.0)),
            estimated_wait_s: progress.estimated_wait_s(place.0),
            ask_again_s: (!released).then(|| self.rooms.ask_again_s(progress, place.0)),
            place: Some(place),
        }
    }

    /// The sale, if it has a room and waiting in it can still lead to a purchase.
    async fn with_room(&self, sale: &SaleId) -> Result<Arc<SaleView>, Problem> {
        let view = self.catalog.view(sale).await?;
        if !view.sale.waiting_room {
            return Err(Kind::NoWaitingRoom.because(format!("buy with POST /v1/sales/{sale}/orders")));
        }
        let over = match view.sale.entry(now_ms()) {
            P1Entry::Ended => Some((P1Entry::Ended, Kind::Ended)),
            _ if view.sold_out.is_some() => Some((P1Entry::SoldOut, Kind::EntrySoldOut)),
            // A pause ends, a draft is warmed: the order stands meanwhile.
            P1Entry::Ready
            | P1Entry::NotStarted
            | P1Entry::Paused
            | P1Entry::Loading
            | P1Entry::SoldOut
            | P1Entry::NotFound
            | P1Entry::Overloaded
            | P1Entry::NotEntitled
            | P1Entry::Blocked
            | P1Entry::Challenge
            | P1Entry::RiskRefused => None,
        };
        over.map_or(Ok(view), |(state, kind)| {
            count(State::P1(state), 1);
            Err(kind.into())
        })
    }
}
