//! What follows in Redis from the broker's answers: entries are deleted, counted or parked; and those of the window are kept.

use super::in_flight::{EntryKey, EntryState, InFlightWindow};
use super::{IDS_MAX, Leaving, Relay, traced};
use crate::domain::states::RequestEvent;
use crate::faults::crash_point;
use crate::runtime::exponential_backoff;
use crate::store::redis::{Outbox, ParkReason, Parking, RedisFault, SentEntry};
use futures::future::join_all;
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Names an entry among all lanes.
type LaneKey = (u16, EntryKey);

/// Confirmed entries of a shard.
struct ConfirmedEntries {
    shard: u16,
    keys: Vec<LaneKey>,
    sent: Vec<SentEntry>,
}

/// Deletes entries on all their shards at once.
async fn delete(outbox: Outbox, relay: &str, confirmed: &[ConfirmedEntries]) -> Vec<Result<i64, RedisFault>> {
    if confirmed.is_empty() {
        return Vec::new();
    }
    crash_point!(AfterConfirm);
    let done = join_all(confirmed.iter().map(|of| outbox.done(of.shard, relay, &of.sent))).await;
    crash_point!(AfterDone);
    done
}

impl Relay {
    /// Deletes what the step before found confirmed, and fills the window. Both are sent together, so that the server makes one
    /// turn and one sync of them. Returns how many entries were taken in.
    pub(super) async fn delete_and_read(&mut self) -> usize {
        let confirmed = self.confirmed();
        let sent = confirmed.iter().flat_map(|of| &of.sent);
        self.leaving = Leaving { entries: sent.clone().count(), orders: sent.map(|entry| entry.orders).sum() };
        let (outbox, relay) = (self.outbox.clone(), self.consumer.clone());
        let (taken, done) = tokio::join!(self.fill_window(), delete(outbox, &relay, &confirmed));
        self.leaving = Leaving::default();
        self.finished(confirmed, done);
        taken
    }

    /// Deletes all confirmed entries of shards that answer.
    pub(super) async fn finish_confirmed(&mut self) {
        loop {
            let confirmed = self.confirmed();
            if confirmed.is_empty() {
                return;
            }
            let done = delete(self.outbox.clone(), &self.consumer, &confirmed).await;
            self.finished(confirmed, done);
        }
    }

    fn confirmed(&self) -> Vec<ConfirmedEntries> {
        let of_shards = self.shards_in_turn().into_iter().map(|shard| {
            let (keys, sent) = self.of_lanes(|window, max| window.confirmed_of(shard, max));
            ConfirmedEntries { shard, keys, sent }
        });
        of_shards.filter(|of| !of.keys.is_empty()).collect()
    }

    /// What all lanes have of something, up to [`IDS_MAX`].
    fn of_lanes<T>(&self, of: impl Fn(&InFlightWindow, usize) -> (Vec<EntryKey>, Vec<T>)) -> (Vec<LaneKey>, Vec<T>) {
        let (mut keys, mut all) = (Vec::new(), Vec::new());
        for lane in &self.lanes {
            let (of_lane, some) = of(&lane.window, IDS_MAX.saturating_sub(keys.len()));
            keys.extend(of_lane.into_iter().map(|key| (lane.session.queue, key)));
            all.extend(some);
        }
        (keys, all)
    }

    /// An error of one shard changes nothing for the others; its entries stay confirmed.
    fn finished(&mut self, confirmed: Vec<ConfirmedEntries>, done: Vec<Result<i64, RedisFault>>) {
        for (of, done) in confirmed.into_iter().zip(done) {
            if self.noted(of.shard, done).is_some() {
                self.gone(of.keys);
            }
        }
    }

    fn gone(&mut self, keys: Vec<LaneKey>) {
        for (queue, key) in keys {
            let Some(mut entry) = self.window_of(queue).and_then(|window| window.remove(key)) else { continue };
            traced::done(&entry);
            entry.happened(RequestEvent::Confirmed);
            tracing::debug!(phase = "p3_relay", request_id = %entry.request_id, "the broker has it");
        }
    }

    fn window_of(&mut self, queue: u16) -> Option<&mut InFlightWindow> {
        self.lanes.get_mut(usize::from(queue)).map(|lane| &mut lane.window)
    }

    /// Counts failed attempts, on all shards at once; entries with attempts left wait for their next one, the others are parked.
    pub(super) async fn count_failed(&mut self) {
        loop {
            let of_shards = self
                .shards_in_turn()
                .into_iter()
                .map(|shard| (shard, self.of_lanes(|window, max| window.failed_of(shard, max))));
            let parts: Vec<_> = of_shards.filter(|(_, (keys, _))| !keys.is_empty()).collect();
            if parts.is_empty() {
                return;
            }
            // A reply lost here counts twice, which only shortens the retries.
            let counts = parts.iter().map(|(shard, (_, ids))| self.outbox.failed(*shard, &self.consumer, ids));
            let counts = join_all(counts).await;
            for ((shard, (keys, _)), counts) in parts.into_iter().zip(counts) {
                for (key, attempts) in keys.into_iter().zip(self.noted(shard, counts).unwrap_or_default()) {
                    let counted = self.counted(key, attempts).await;
                    if self.noted(shard, counted).is_none() {
                        break;
                    }
                }
            }
        }
    }

    async fn counted(&mut self, (queue, key): LaneKey, attempts: u32) -> Result<(), RedisFault> {
        let Some(window) = self.lanes.get_mut(usize::from(queue)).map(|lane| &mut lane.window) else { return Ok(()) };
        let reason = window.failure(key).unwrap_or_default().to_owned();
        let Some(entry) = window.get_mut(key) else { return Ok(()) };
        let request_id = entry.request_id.clone();
        traced::counted(entry, attempts);
        if attempts == 0 {
            tracing::debug!(phase = "p3_relay", %request_id, %reason, "failed here, but another relay has it by now");
            window.remove(key);
        } else if attempts < self.settings.attempts_max {
            entry.happened(RequestEvent::PublishFailed);
            let (first, longest) = (self.settings.backoff_ms, self.settings.backoff_max_ms);
            let pause = exponential_backoff(Duration::from_millis(first), attempts - 1, Duration::from_millis(longest));
            tracing::debug!(phase = "p3_relay", %request_id, attempts, %reason, "will be sent again");
            window.set_state(key, EntryState::Waiting(Instant::now() + pause));
        } else {
            let (shard, id, orders) = (entry.shard, entry.id.clone(), entry.parked_orders());
            traced::parked(entry, None);
            crash_point!(BeforePark);
            // After an error it stays failed: counted once more, and parked then.
            let why = ParkReason { reason: &reason, attempts };
            let parking = self.outbox.park_orders(shard, &self.consumer, &id, (why, &orders)).await?;
            crash_point!(AfterPark);
            traced::parked(entry, Some(parking));
            match (parking, window.remove(key)) {
                (Parking::Moved, Some(mut entry)) => {
                    entry.happened(RequestEvent::PublishSpent);
                    let orders = entry.orders;
                    tracing::error!(phase = "p3_relay", %request_id, orders, attempts, %reason, "parked in the relay DLQ");
                }
                (Parking::Gone, _) => self.deleted_while_pending(shard, &[id]).await?,
                (Parking::NotOurs, _) => {
                    tracing::info!(phase = "p3_relay", %request_id, "not parked: another relay has it by now");
                }
                (Parking::Moved, None) => {}
            }
        }
        Ok(())
    }

    /// Keeps the entries of the window from being taken over, and removes those that were; on all shards at once.
    pub(super) async fn touch(&mut self) {
        if Instant::now() < self.touch_at {
            return;
        }
        let mut parts: Vec<(u16, Vec<String>)> = Vec::new();
        for shard in self.shards_in_turn() {
            let ids: Vec<String> = self.lanes.iter().flat_map(|lane| lane.window.ids_of(shard)).collect();
            parts.extend(ids.chunks(IDS_MAX).map(|part| (shard, part.to_vec())));
        }
        let touched = parts.iter().map(|(shard, ids)| self.outbox.touch(*shard, &self.consumer, ids));
        let mut is_whole = true;
        for ((shard, ids), mine) in parts.iter().zip(join_all(touched).await) {
            match self.noted(*shard, mine) {
                Some(mine) => self.keep_only(*shard, ids, mine),
                None => is_whole = false,
            }
        }
        if is_whole {
            self.touch_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 3);
        }
    }

    /// Removes from the window what is another relay's by now.
    fn keep_only(&mut self, shard: u16, ids: &[String], mine: Vec<String>) {
        let mine: HashSet<String> = mine.into_iter().collect();
        let lost: Vec<&String> = ids.iter().filter(|id| !mine.contains(*id)).collect();
        if !lost.is_empty() {
            tracing::warn!(phase = "p3_relay", shard, count = lost.len(), "another relay has these entries now");
        }
        for lane in &mut self.lanes {
            lost.iter().for_each(|id| lane.window.lost(shard, id));
        }
    }
}
