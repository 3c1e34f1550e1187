//! The waiting room of a sale that has one: a fair order for those who came, and a pace at which they may buy.
//!
//! Input: buyers who come, and who ask with their ticket. Output: a place, and from its turn on a purchase token. The order
//! and how far it has been let go are in Redis; this process keeps a copy of the latter and nothing else, so a crash leaves
//! nothing behind. A buyer who asks with a ticket costs no server a call.

mod enter;
mod keep;
mod tickets;
mod visit;

pub use keep::KeepRooms;
pub use visit::Visit;

use super::catalog::View;
use super::overload::Overload;
use crate::config;
use crate::domain::ids::{SaleId, UserId};
use crate::domain::room::Progress;
use crate::domain::sale::Sale;
use crate::groups::Groups;
use crate::http::problem::{Kind, Problem};
use crate::runtime::Stopper;
use crate::store::redis::{RedisFault, RedisStore};
use enter::{Arrival, Entered};
use moka::future::Cache;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tickets::Tickets;

/// A room nobody asked this process about for this time is let go by others, or by nobody: longer than anyone is ever sent
/// away for.
const KNOWN_FOR: Duration = Duration::from_secs(600);
/// Rooms this process looks after at once.
const KNOWN_MAX: u64 = 1_000;

/// The waiting rooms as one process sees them. Clones share it.
#[derive(Clone)]
pub struct Rooms {
    redis: RedisStore,
    overload: Overload,
    tickets: Arc<Tickets>,
    arrivals: Groups<Arrival, Entered>,
    known: Cache<SaleId, Arc<Known>>,
    rate_per_s: u32,
}

/// What this process knows of one room.
#[derive(Default)]
struct Known {
    progress: RwLock<Progress>,
    /// The highest place seen on a ticket.
    signed_max: AtomicU64,
}

impl Known {
    fn progress(&self) -> Progress {
        *self.progress.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rooms {
    /// Rooms over one Redis. Its calls run on the runtime this is called in, until the stopper is pulled.
    #[must_use]
    pub fn start(redis: RedisStore, overload: Overload, settings: &config::P1Entry, stopper: &Stopper) -> Self {
        Self {
            arrivals: enter::start(redis.clone(), settings.room_places_max, stopper),
            tickets: Arc::new(Tickets::new(&settings.token_secret)),
            known: Cache::builder().max_capacity(KNOWN_MAX).time_to_idle(KNOWN_FOR).build(),
            rate_per_s: settings.room_release_per_s,
            redis,
            overload,
        }
    }

    /// Lets the next places of a room go, at the pace of what the entry lets in; nothing of a sale that is sold out.
    async fn release(&self, sale: &Sale, sold_out: bool, known: &Known) -> Result<(), RedisFault> {
        let rate_per_s = match self.overload.lets_in_per_s() {
            _ if sold_out => 0,
            Some(let_in_per_s) => self.rate_per_s.min(let_in_per_s),
            None => self.rate_per_s,
        };
        let door = self.redis.rooms.release(sale, rate_per_s, known.signed_max.load(Ordering::Acquire)).await?;
        metrics::counter!("seckill_p1_entry_room_released_total").increment(door.gained);
        *known.progress.write().unwrap_or_else(PoisonError::into_inner) =
            Progress { released: door.released, arrivals: door.arrivals, opens_in_ms: door.opens_in_ms };
        Ok(())
    }

    /// What is known of a room: at most a moment old while Redis answers. The first to ask makes it known, once.
    async fn known(&self, view: &View) -> Result<Arc<Known>, Problem> {
        let first = async {
            let known = Arc::new(Known::default());
            self.release(&view.sale, view.sold_out.is_some(), &known).await.map(|()| known)
        };
        self.known.try_get_with(view.sale.sale_id.clone(), first).await.map_err(|error| away(&error))
    }

    /// The place on a ticket, and how far the room has been let go.
    async fn look(&self, view: &View, user: &UserId, ticket: Option<&str>) -> Result<(u64, Progress), Problem> {
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
        let known = self.known(view).await?;
        known.signed_max.fetch_max(place, Ordering::AcqRel);
        Ok((place, known.progress()))
    }

    /// Whether this buyer's turn has come.
    ///
    /// # Errors
    /// 428 without a ticket, 403 with a wrong one, 425 before the turn, 503 when nobody can tell.
    pub async fn admit(&self, view: &View, user: &UserId, ticket: Option<&str>) -> Result<(), Problem> {
        let (place, progress) = self.look(view, user, ticket).await?;
        if progress.has_released(place) {
            return Ok(());
        }
        let (ahead, again_s) = (progress.ahead_of(place), self.ask_again_s(progress, place));
        let detail = format!("{ahead} are before you; ask GET /v1/sales/{}/places", view.sale.sale_id);
        Err(Kind::PlaceWaiting.because(detail).retry_after_s(again_s))
    }

    fn ask_again_s(&self, progress: Progress, place: u64) -> u64 {
        progress.ask_again_s(place, self.rate_per_s, rand::random())
    }
}

fn away(error: &RedisFault) -> Problem {
    tracing::debug!(phase = "p1_entry", %error, "waiting room");
    Kind::Unavailable.because("the waiting room cannot be asked right now; places are kept")
}
