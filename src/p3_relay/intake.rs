//! Where a relay's entries come from: its own unfinished ones, those that others left, and new ones.
//!
//! An idle relay polls on the connection that all tasks share: a read that blocks would need a client of its own with a longer
//! time-out, and would delay a stop. The price is up to `p3_relay.idle_ms` of latency.

use super::Relay;
use super::entry::{RelayEntry, UnreadableEntry};
use super::traced;
use crate::domain::shard::order_queue_index;
use crate::domain::states::{P3Relay, State};
use crate::faults::{crash_point, left_out};
use crate::store::redis::{OutboxEntry, ParkReason, Parking, RedisFault};
use crate::telemetry::count;
use futures::future::join_all;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Least orders to read of a shard while there is room for more: with hardly any room, few shards are read, not all.
const SHARE_MIN: usize = 32;
/// A shard that had nothing new is not read for this time, while others keep the relay busy: with many shards, reading the
/// empty ones at every step costs more than the entries of the others. Never longer than the pause of an idle relay (`idle_ms`).
const EMPTY_REST: Duration = Duration::from_millis(5);

impl Relay {
    /// Fills the window. Returns how many entries it took.
    pub(super) async fn fill_window(&mut self) -> usize {
        let mut taken = 0;
        for shard in self.shards_in_turn() {
            if let Some(from) = self.own_from.get(usize::from(shard)).cloned().flatten() {
                let own = self.take_own(shard, from).await;
                taken += self.noted(shard, own).unwrap_or_default();
            }
        }
        taken += self.sweep().await;
        taken + self.take_new().await
    }

    /// What a shard answered, or its trouble noted.
    pub(super) fn noted<T>(&mut self, shard: u16, answer: Result<T, RedisFault>) -> Option<T> {
        match answer {
            Ok(answer) => {
                self.trouble.answered(shard, Instant::now());
                Some(answer)
            }
            Err(fault) => {
                self.doubt(shard, &fault);
                self.trouble.note(shard, fault, Instant::now());
                None
            }
        }
    }

    /// Entries that were read for this relay's name and never finished: before its last restart, or with a reply that got lost
    /// (window 26). After a failure the next step goes on from the same id.
    async fn take_own(&mut self, shard: u16, from: String) -> Result<usize, RedisFault> {
        if left_out!(OwnPending) {
            return Ok(0);
        }
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let count = self.entries_for(shard, room);
        let (entries, next) = self.outbox.own_entries(shard, &self.consumer, &from, count).await?;
        if !entries.is_empty() {
            crash_point!(AfterRead);
        }
        let taken = self.accept(shard, entries).await?;
        self.own_next(shard, next);
        Ok(taken)
    }

    pub(super) fn own_next(&mut self, shard: u16, from: Option<String>) {
        if let Some(own_from) = self.own_from.get_mut(usize::from(shard)) {
            *own_from = from;
        }
    }

    /// Reads new entries of several shards at once, because a round trip for each of many costs more than a few entries do.
    /// All get the same share of the room; a shard that filled its share is read again for the room that the others left.
    async fn take_new(&mut self) -> usize {
        let mut taken = 0;
        let mut room = self.room();
        let now = Instant::now();
        let rested = |shard: &u16| self.read_at.get(usize::from(*shard)).is_none_or(|at| *at <= now);
        let mut shards: VecDeque<u16> = self.shards_in_turn().into_iter().filter(rested).collect();
        while room > 0 && !shards.is_empty() {
            let count = (room / SHARE_MIN).clamp(1, shards.len());
            let share = room / count;
            let next: Vec<u16> = shards.drain(..count).collect();
            for (shard, read) in self.read_new(next, share).await {
                let wanted = self.entries_for(shard, share);
                if read.as_ref().is_ok_and(|entries| entries.len() >= wanted) {
                    shards.push_back(shard);
                }
                let orders = read.as_ref().map_or(0, |entries| self.note_sizes(shard, entries));
                room = room.saturating_sub(orders);
                let accepted = self.accept_new(shard, read).await;
                taken += self.noted(shard, accepted).unwrap_or_default();
            }
        }
        taken
    }

    /// Entries of a shard to read for this many orders.
    pub(super) fn entries_for(&self, shard: u16, orders: usize) -> usize {
        self.entry_sizes.get(usize::from(shard)).copied().unwrap_or_default().entries_for(orders)
    }

    fn note_sizes(&mut self, shard: u16, entries: &[OutboxEntry]) -> usize {
        self.entry_sizes.get_mut(usize::from(shard)).map_or(0, |sizes| sizes.note(entries))
    }

    async fn read_new(&self, shards: Vec<u16>, share: usize) -> Vec<(u16, Result<Vec<OutboxEntry>, RedisFault>)> {
        let read = |shard: &u16| self.outbox.new_entries(*shard, &self.consumer, self.entries_for(*shard, share));
        let reads = join_all(shards.iter().map(read)).await;
        if reads.iter().flatten().any(|entries| !entries.is_empty()) {
            crash_point!(AfterRead);
        }
        shards.into_iter().zip(reads).collect()
    }

    async fn accept_new(
        &mut self,
        shard: u16,
        read: Result<Vec<OutboxEntry>, RedisFault>,
    ) -> Result<usize, RedisFault> {
        let entries = read?;
        if entries.is_empty() {
            self.rest(shard);
            return Ok(0);
        }
        self.accept(shard, entries).await
    }

    fn rest(&mut self, shard: u16) {
        if let Some(at) = self.read_at.get_mut(usize::from(shard)) {
            *at = Instant::now() + EMPTY_REST.min(Duration::from_millis(self.settings.idle_ms));
        }
    }

    /// After a lost answer, entries may be this relay's that it has not seen: it reads its own again.
    pub(super) fn doubt(&mut self, shard: u16, fault: &RedisFault) {
        match fault {
            RedisFault::Unknown(_) | RedisFault::Contract(_) => self.own_next(shard, Some("0".to_owned())),
            RedisFault::NotSent(_) | RedisFault::NoScript | RedisFault::Refused(_) => {}
        }
    }

    /// Puts entries into the window. Unreadable entries go to the relay DLQ at once and block no other (C6); deleted entries do
    /// not break the rest of their batch (window 32).
    pub(super) async fn accept(&mut self, shard: u16, entries: Vec<OutboxEntry>) -> Result<usize, RedisFault> {
        let accepted = self.sort_out(shard, entries).await;
        // Entries left over are this relay's and not in its window.
        accepted.inspect_err(|_fault| self.own_next(shard, Some("0".to_owned())))
    }

    async fn sort_out(&mut self, shard: u16, entries: Vec<OutboxEntry>) -> Result<usize, RedisFault> {
        let mut taken = 0;
        let mut poison = Vec::new();
        let mut deleted = Vec::new();
        for entry in entries {
            if self.lanes.iter().any(|lane| lane.window.contains(shard, &entry.id)) {
                continue;
            }
            if entry.fields.is_empty() {
                deleted.push(entry.id);
                continue;
            }
            taken += 1;
            match RelayEntry::read(shard, entry) {
                Ok(entry) => {
                    tracing::debug!(phase = "p3_relay", request_id = %entry.request_id, entry = %entry.id, "read");
                    traced::read(&self.consumer, &entry);
                    self.admit(entry);
                }
                Err(unreadable) => poison.push(unreadable),
            }
        }
        if !deleted.is_empty() {
            self.deleted_while_pending(shard, &deleted).await?;
        }
        for UnreadableEntry { id, reason } in poison {
            self.park_poison(shard, &id, &reason).await?;
        }
        Ok(taken)
    }

    fn admit(&mut self, entry: RelayEntry) {
        let (queues, makes_room) = (u16::try_from(self.lanes.len()).unwrap_or(u16::MAX), self.makes_room);
        let queue = order_queue_index(entry.sale_id.as_str(), queues);
        if let Some(lane) = self.lanes.get_mut(usize::from(queue)) {
            lane.admit(entry, makes_room);
        }
    }

    async fn park_poison(&mut self, shard: u16, id: &str, reason: &str) -> Result<(), RedisFault> {
        crash_point!(BeforePark);
        match self.outbox.park(shard, &self.consumer, id, ParkReason { reason, attempts: 0 }).await? {
            Parking::Moved => {
                crash_point!(AfterPark);
                count(State::P3(P3Relay::RelayDlq), 1);
                tracing::error!(phase = "p3_relay", shard, entry = %id, %reason, "parked in the relay DLQ");
            }
            Parking::NotOurs => {}
            Parking::Gone => self.deleted_while_pending(shard, &[id.to_owned()]).await?,
        }
        Ok(())
    }
}
