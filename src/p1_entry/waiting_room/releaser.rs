//! Releases places of the rooms that buyers ask this process about. Part of the api role.
//!
//! Every api process does it and none leads: the script counts from the last call of any process, so all of them together
//! release as much as one alone. A process that dies or stands still is not missed; without any process nothing is released.

use super::rooms::WaitingRooms;
use crate::domain::fault::{Fault, Progress};
use crate::p1_entry::catalog::{Catalog, CatalogLookup};
use crate::runtime::{PollInterval, Worker};

/// Releases places, and reads how many are released.
pub(crate) struct RoomReleaser {
    rooms: WaitingRooms,
    catalog: Catalog,
}

impl RoomReleaser {
    /// Releases the rooms of sales that `catalog` knows.
    #[must_use]
    pub(crate) const fn new(rooms: WaitingRooms, catalog: Catalog) -> Self {
        Self { rooms, catalog }
    }

    /// How often each room is released further.
    pub(crate) const PACE: PollInterval = PollInterval::idle_ms(200);
}

impl Worker for RoomReleaser {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let (rooms, catalog) = (&self.rooms, &self.catalog);
        let known: Vec<_> = rooms.known.iter().collect();
        let releases = known.iter().map(|(sale, room)| async move {
            match catalog.lookup(sale).await {
                CatalogLookup::Found(view) => rooms.release(&view.sale, view.sold_out.is_some(), room).await,
                // The sale cannot be read right now; the state of its room stays as it is.
                CatalogLookup::Missing | CatalogLookup::Loading | CatalogLookup::Unavailable => Ok(()),
            }
        });
        let released = futures::future::join_all(releases).await;
        let waiting = known.iter().map(|(_, room)| {
            let progress = room.progress();
            progress.arrivals.saturating_sub(progress.released)
        });
        metrics::gauge!("seckill_p1_entry_room_waiting_count").set(waiting.sum::<u64>() as f64);
        released.into_iter().collect::<Result<(), _>>().map_err(Fault::back_off)?;
        Ok(Progress::Idle)
    }
}
