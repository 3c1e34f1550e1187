//! The waiting rooms as one process sees them: places, how many are released, and whose turn it is.
//!
//! Input: tickets, and the sales they belong to. Output: admitted, or when to ask again. Redis has the truth; a crash loses
//! a copy.

use super::arrivals::{self, Arrival, ArrivalResult};
use super::tickets::PlaceTickets;
use crate::config;
use crate::domain::ids::{SaleId, UserId};
use crate::domain::room::{ReleasePace, ReleaseProgress};
use crate::domain::sale::Sale;
use crate::http::problem::{Kind, Problem};
use crate::p1_entry::catalog::SaleView;
use crate::p1_entry::overload::Overload;
use crate::runtime::batcher::QuestionBatcher;
use crate::store::redis::{RedisFault, RoomQueue};
use moka::future::Cache;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// A room is forgotten when this process was not asked about it for this time; other processes may go on releasing it. It
/// is longer than any buyer has to wait before asking again.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// WaitingRooms this process keeps at once.
const KNOWN_MAX: u64 = 1_000;

/// The waiting rooms as one process sees them. Clones share it.
#[derive(Clone)]
pub(crate) struct WaitingRooms {
    queue: RoomQueue,
    overload: Overload,
    pub(super) tickets: Arc<PlaceTickets>,
    pub(super) arrivals: QuestionBatcher<Arrival, ArrivalResult>,
    pub(super) known: Cache<SaleId, Arc<RoomState>>,
    rate_per_s: u32,
}

/// What this process knows of one room.
pub(super) struct RoomState {
    progress: RwLock<ReleaseProgress>,
    /// The highest place seen on a ticket.
    signed_max: AtomicU64,
    pace: Mutex<ReleasePace>,
    known_since: Instant,
}

impl Default for RoomState {
    fn default() -> Self {
        let (progress, signed_max, pace) = Default::default();
        Self { progress, signed_max, pace, known_since: Instant::now() }
    }
}

impl RoomState {
    pub(super) fn progress(&self) -> ReleaseProgress {
        *self.progress.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how far it is released now.
    fn note(&self, released: u64, arrivals: u64, opens_in_ms: u64) {
        let at_ms = u64::try_from(self.known_since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let lately = self.pace.lock().unwrap_or_else(PoisonError::into_inner).note(at_ms, released);
        *self.progress.write().unwrap_or_else(PoisonError::into_inner) =
            ReleaseProgress { released, arrivals, opens_in_ms, lately };
    }
}

impl WaitingRooms {
    /// WaitingRooms over one Redis. Its calls run on the runtime this is called in.
    #[must_use]
    pub(crate) fn start(queue: RoomQueue, overload: Overload, settings: &config::P1Entry) -> Self {
        Self {
            arrivals: arrivals::start(queue.clone(), settings.room_places_max),
            tickets: Arc::new(PlaceTickets::new(settings.token_secrets_in_use())),
            known: Cache::builder().max_capacity(KNOWN_MAX).time_to_idle(KNOWN_FOR).build(),
            rate_per_s: settings.room_release_per_s,
            queue,
            overload,
        }
    }

    /// Releases the next places of a room, not faster than the entry lets buyers in; none once the sale is sold out.
    pub(super) async fn release(&self, sale: &Sale, sold_out: bool, known: &RoomState) -> Result<(), RedisFault> {
        let rate_per_s = match self.overload.lets_in_per_s() {
            _ if sold_out => 0,
            Some(let_in_per_s) => self.rate_per_s.min(let_in_per_s),
            None => self.rate_per_s,
        };
        let door = self.queue.release(sale, rate_per_s, known.signed_max.load(Ordering::Acquire)).await?;
        metrics::counter!("seckill_p1_entry_room_released_total").increment(door.gained);
        known.note(door.released, door.arrivals, door.opens_in_ms);
        Ok(())
    }

    /// The state of a room: a moment old at most while Redis answers. The first question about a room reads it, once.
    pub(super) async fn state_of(&self, view: &SaleView) -> Result<Arc<RoomState>, Problem> {
        let first = async {
            let known = Arc::new(RoomState::default());
            self.release(&view.sale, view.sold_out.is_some(), &known).await.map(|()| known)
        };
        self.known.try_get_with(view.sale.sale_id.clone(), first).await.map_err(|error| unavailable(&error))
    }

    /// The place on a ticket, and how many places are released.
    pub(super) async fn position_of(
        &self,
        view: &SaleView,
        user: &UserId,
        ticket: Option<&str>,
    ) -> Result<(u64, ReleaseProgress), Problem> {
        let sale = &view.sale.sale_id;
        let Some(ticket) = ticket else {
            return Err(Kind::PlaceRequired.because(format!(
                "take a place with POST /v1/sales/{sale}/places and send its ticket as Seckill-Place"
            )));
        };
        let place = self.tickets.check(ticket, user, sale).ok_or_else(|| {
            Kind::PlaceInvalid.because(
                "Seckill-Place must be a ticket from POST …/places of this sale, given to the same buyer, unchanged",
            )
        })?;
        let known = self.state_of(view).await?;
        known.signed_max.fetch_max(place, Ordering::AcqRel);
        Ok((place, known.progress()))
    }

    /// Whether this buyer's turn has come.
    ///
    /// # Errors
    /// 428 without a ticket, 403 with a wrong one, 425 before the turn, 503 when Redis does not answer.
    pub(crate) async fn admit(&self, view: &SaleView, user: &UserId, ticket: Option<&str>) -> Result<(), Problem> {
        let (place, progress) = self.position_of(view, user, ticket).await?;
        if progress.has_released(place) {
            return Ok(());
        }
        let (ahead, again_s) = (progress.ahead_of(place), self.ask_again_s(progress, place));
        let detail = format!("{ahead} are before you; ask GET /v1/sales/{}/places", view.sale.sale_id);
        Err(Kind::PlaceWaiting.because(detail).retry_after_s(again_s))
    }

    pub(super) fn ask_again_s(&self, progress: ReleaseProgress, place: u64) -> u64 {
        progress.ask_again_s(place, self.rate_per_s, rand::random())
    }
}

pub(super) fn unavailable(error: &RedisFault) -> Problem {
    tracing::debug!(phase = "p1_entry", %error, "waiting room");
    Kind::Unavailable
        .because_both("the waiting room cannot be asked right now; places are kept", "暂时无法查询排队，位置会保留")
}
