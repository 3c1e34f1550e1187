//! What follows in Redis from the broker's answers: entries are deleted, counted or parked; and those of the window are kept.

use super::in_flight::{EntryKey, EntryState};
use super::{IDS_MAX, Relay};
use crate::domain::states::RequestEvent;
use crate::faults::crash_point;
use crate::runtime::exponential_backoff;
use crate::store::redis::{ParkReason, Parking, RedisFault};
use futures::future::join_all;
use std::collections::HashSet;
use std::time::{Duration, Instant};

impl Relay {
    /// Deletes the confirmed entries, on all shards at once. An error of one shard changes nothing for the others.
    pub(super) async fn finish_confirmed(&mut self) -> Result<(), RedisFault> {
        loop {
            let of_shards = self.shards.iter().map(|shard| (*shard, self.window.confirmed_of(*shard, IDS_MAX)));
            let parts: Vec<_> = of_shards.filter(|(_, (keys, _))| !keys.is_empty()).collect();
            if parts.is_empty() {
                return Ok(());
            }
            crash_point!(AfterConfirm);
            let done = parts.iter().map(|(shard, (_, sent))| self.outbox.done(*shard, &self.consumer, sent));
            let done = join_all(done).await;
            crash_point!(AfterDone);
            let mut failed = None;
            for ((_, (keys, _)), done) in parts.into_iter().zip(done) {
                match done {
                    Ok(_deleted) => self.finished(keys),
                    Err(fault) => failed = failed.or(Some(fault)),
                }
            }
            if let Some(fault) = failed {
                return Err(fault);
            }
        }
    }

    fn finished(&mut self, keys: Vec<EntryKey>) {
        for mut entry in keys.into_iter().filter_map(|key| self.window.remove(key)) {
            entry.happened(RequestEvent::Confirmed);
            tracing::debug!(phase = "p3_relay", request_id = %entry.request_id, "the broker has it");
        }
    }

    /// Counts failed attempts, on all shards at once; entries with attempts left wait for their next one, the others are parked.
    pub(super) async fn count_failed(&mut self) -> Result<(), RedisFault> {
        loop {
            let of_shards = self.shards.iter().map(|shard| (*shard, self.window.failed_of(*shard, IDS_MAX)));
            let parts: Vec<_> = of_shards.filter(|(_, (keys, _))| !keys.is_empty()).collect();
            if parts.is_empty() {
                return Ok(());
            }
            // A reply lost here counts twice, which only shortens the retries.
            let counts = parts.iter().map(|(shard, (_, ids))| self.outbox.failed(*shard, &self.consumer, ids));
            let counts = join_all(counts).await;
            let mut failed = None;
            for ((_, (keys, _)), counts) in parts.into_iter().zip(counts) {
                match counts {
                    Ok(counts) => {
                        for (key, attempts) in keys.into_iter().zip(counts) {
                            self.counted(key, attempts).await?;
                        }
                    }
                    Err(fault) => failed = failed.or(Some(fault)),
                }
            }
            if let Some(fault) = failed {
                return Err(fault);
            }
        }
    }

    async fn counted(&mut self, key: EntryKey, attempts: u32) -> Result<(), RedisFault> {
        let reason = self.window.failure(key).unwrap_or_default().to_owned();
        let Some(entry) = self.window.get_mut(key) else { return Ok(()) };
        let request_id = entry.request_id.clone();
        if attempts == 0 {
            tracing::debug!(phase = "p3_relay", %request_id, %reason, "failed here, but another relay has it by now");
            self.window.remove(key);
        } else if attempts < self.settings.attempts_max {
            entry.happened(RequestEvent::PublishFailed);
            let (first, longest) = (self.settings.backoff_ms, self.settings.backoff_max_ms);
            let pause = exponential_backoff(Duration::from_millis(first), attempts - 1, Duration::from_millis(longest));
            tracing::debug!(phase = "p3_relay", %request_id, attempts, %reason, "will be sent again");
            self.window.set_state(key, EntryState::Waiting(Instant::now() + pause));
        } else {
            let (shard, id, orders) = (entry.shard, entry.id.clone(), entry.parked_orders());
            crash_point!(BeforePark);
            // After an error it stays failed: counted once more, and parked then.
            let why = ParkReason { reason: &reason, attempts };
            let parking = self.outbox.park_orders(shard, &self.consumer, &id, (why, &orders)).await?;
            crash_point!(AfterPark);
            match (parking, self.window.remove(key)) {
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
    pub(super) async fn touch(&mut self) -> Result<(), RedisFault> {
        if Instant::now() < self.touch_at {
            return Ok(());
        }
        let mut parts: Vec<(u16, Vec<String>)> = Vec::new();
        for shard in self.shards.iter().copied() {
            parts.extend(self.window.ids_of(shard).chunks(IDS_MAX).map(|part| (shard, part.to_vec())));
        }
        let touched = parts.iter().map(|(shard, ids)| self.outbox.touch(*shard, &self.consumer, ids));
        let mut failed = None;
        for ((shard, ids), mine) in parts.iter().zip(join_all(touched).await) {
            match mine {
                Ok(mine) => self.keep_only(*shard, ids, mine),
                Err(fault) => failed = failed.or(Some(fault)),
            }
        }
        if let Some(fault) = failed {
            return Err(fault);
        }
        self.touch_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 3);
        Ok(())
    }

    /// Removes from the window what is another relay's by now.
    fn keep_only(&mut self, shard: u16, ids: &[String], mine: Vec<String>) {
        let mine: HashSet<String> = mine.into_iter().collect();
        let lost: Vec<&String> = ids.iter().filter(|id| !mine.contains(*id)).collect();
        if !lost.is_empty() {
            tracing::warn!(phase = "p3_relay", shard, count = lost.len(), "another relay has these entries now");
        }
        lost.into_iter().for_each(|id| self.window.lost(shard, id));
    }
}
