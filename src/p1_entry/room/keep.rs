//! Keeps the rooms going that buyers ask this process about. Part of the api role.
//!
//! Every api process does it, none leads: the script counts from the last call of anybody, so all of them together release
//! what one would. A process that dies or stands still is not missed; when all are gone nothing is released.

use super::Rooms;
use crate::domain::fault::{Fault, Progress};
use crate::p1_entry::catalog::{Catalog, Look};
use crate::runtime::{PollInterval, Worker};

/// Lets places go, and reads how far.
pub struct KeepRooms {
    /// The rooms.
    pub rooms: Rooms,
    /// The sales they belong to.
    pub catalog: Catalog,
}

impl KeepRooms {
    /// How often a room is let go.
    pub const PACE: PollInterval = PollInterval::idle_ms(200);
}

impl Worker for KeepRooms {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let keeper = &*self;
        let rooms: Vec<_> = keeper.rooms.known.iter().collect();
        let releases = rooms.iter().map(|(sale, known)| async move {
            match keeper.catalog.look(sale).await {
                Look::Found(view) => keeper.rooms.release(&view.sale, view.sold_out.is_some(), known).await,
                // Not known right now; what is kept of the room stays as it is.
                Look::Missing | Look::Loading | Look::Unavailable => Ok(()),
            }
        });
        let released = futures::future::join_all(releases).await;
        let waiting = rooms.iter().map(|(_, known)| {
            let progress = known.progress();
            progress.arrivals.saturating_sub(progress.released)
        });
        metrics::gauge!("seckill_p1_entry_room_waiting_count").set(waiting.sum::<u64>() as f64);
        released.into_iter().collect::<Result<(), _>>().map_err(Fault::back_off)?;
        Ok(Progress::Idle)
    }
}
