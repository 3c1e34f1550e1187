//! Where a relay's entries come from: its own unfinished ones, those that others left, and new ones.

use super::Relay;
use super::entry::InHand;
use crate::domain::states::{P3Relay, State};
use crate::faults::{crash_point, left_out};
use crate::store::redis::{Entry, Parking, RedisFault};
use crate::telemetry::count;
use futures::future::join_all;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Fewer entries than this are asked of a shard only if there is no more room: with hardly any, few shards are read, not all.
const SHARE_MIN: usize = 32;
/// A shard that had nothing new is left alone for this time, while others keep the relay busy: with many shards, asking the empty
/// ones at every step costs more than what the others give. Never longer than a relay without work waits (`idle_ms`).
const EMPTY_REST: Duration = Duration::from_millis(5);

impl Relay {
    /// Fills the window. Returns how many entries were taken in.
    pub(super) async fn take_in(&mut self) -> Result<usize, RedisFault> {
        let mut taken = 0;
        for shard in self.shards_in_turn() {
            if let Some(from) = self.own_from.get(usize::from(shard)).cloned().flatten() {
                taken += self.take_own(shard, from).await?;
            }
        }
        taken += self.sweep().await?;
        taken += self.take_new().await?;
        Ok(taken)
    }

    /// Entries that were read for this relay's name and never finished: by its life before this one, or by a reply that got
    /// lost (window 26). Whatever fails, the drain goes on from the same place at the next step.
    async fn take_own(&mut self, shard: u16, from: String) -> Result<usize, RedisFault> {
        if left_out!(OwnPending) {
            return Ok(0);
        }
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let read = self.redis.outbox.own_entries(shard, &self.consumer, &from, room).await;
        let (entries, next) = read.inspect_err(|fault| self.doubt(shard, fault))?;
        if !entries.is_empty() {
            crash_point!(AfterRead);
        }
        let taken = self.accept(shard, entries).await?;
        self.own_next(shard, next);
        Ok(taken)
    }

    fn own_next(&mut self, shard: u16, from: Option<String>) {
        if let Some(own_from) = self.own_from.get_mut(usize::from(shard)) {
            *own_from = from;
        }
    }

    /// Reads new entries of several shards at once, because a round trip for each of many costs more than a few entries do.
    /// All get the same share of the room; those that had as much are asked again for what the others left. Whatever one
    /// shard's answer is, everything that another one gave is taken in.
    async fn take_new(&mut self) -> Result<usize, RedisFault> {
        let (mut taken, mut failed) = (0, None);
        let mut room = self.room();
        let now = Instant::now();
        let rested = |shard: &u16| self.read_at.get(usize::from(*shard)).is_none_or(|at| *at <= now);
        let mut shards: VecDeque<u16> = self.shards_in_turn().into_iter().filter(rested).collect();
        while room > 0 && !shards.is_empty() && failed.is_none() {
            let count = (room / SHARE_MIN).clamp(1, shards.len());
            let share = room / count;
            let asked: Vec<u16> = shards.drain(..count).collect();
            let reads = asked.iter().map(|shard| self.redis.outbox.new_entries(*shard, &self.consumer, share));
            let reads = join_all(reads).await;
            if reads.iter().flatten().any(|entries| !entries.is_empty()) {
                crash_point!(AfterRead);
            }
            for (shard, read) in asked.into_iter().zip(reads) {
                let accepted = match read.inspect_err(|fault| self.doubt(shard, fault)) {
                    Ok(entries) => {
                        room = room.saturating_sub(entries.len());
                        if entries.is_empty() {
                            self.rest(shard);
                        } else if entries.len() >= share {
                            shards.push_back(shard);
                        }
                        self.accept(shard, entries).await
                    }
                    Err(fault) => Err(fault),
                };
                match accepted {
                    Ok(count) => taken += count,
                    Err(fault) => failed = failed.or(Some(fault)),
                }
            }
        }
        failed.map_or(Ok(taken), Err)
    }

    fn rest(&mut self, shard: u16) {
        if let Some(at) = self.read_at.get_mut(usize::from(shard)) {
            *at = Instant::now() + EMPTY_REST.min(Duration::from_millis(self.settings.idle_ms));
        }
    }

    /// After an answer that was not heard, entries may be this relay's without it having seen them: it reads its own again.
    pub(super) fn doubt(&mut self, shard: u16, fault: &RedisFault) {
        match fault {
            RedisFault::Unknown(_) | RedisFault::Contract(_) => self.own_next(shard, Some("0".to_owned())),
            RedisFault::NotSent(_) | RedisFault::NoScript | RedisFault::Refused(_) => {}
        }
    }

    /// Takes entries into the hand; unreadable ones go to the relay DLQ at once, blocking nobody (C6), and deleted ones do not
    /// break the rest of their batch (window 32).
    pub(super) async fn accept(&mut self, shard: u16, entries: Vec<Entry>) -> Result<usize, RedisFault> {
        let accepted = self.sort_out(shard, entries).await;
        // What could not be dealt with is this relay's and not in its hand.
        accepted.inspect_err(|_fault| self.own_next(shard, Some("0".to_owned())))
    }

    async fn sort_out(&mut self, shard: u16, entries: Vec<Entry>) -> Result<usize, RedisFault> {
        let mut taken = 0;
        let mut poison = Vec::new();
        let mut deleted = Vec::new();
        for entry in entries {
            if self.hand.holds(shard, &entry.id) {
                continue;
            }
            if entry.fields.is_empty() {
                deleted.push(entry.id);
                continue;
            }
            taken += 1;
            match InHand::read(shard, &entry) {
                Ok(item) => {
                    tracing::debug!(phase = "p3_relay", request_id = %item.request_id, entry = %entry.id, "read");
                    self.hand.take(item);
                }
                Err(reason) => poison.push((entry.id, reason)),
            }
        }
        if !deleted.is_empty() {
            self.deleted_while_pending(shard, &deleted).await?;
        }
        for (id, reason) in poison {
            self.park_poison(shard, &id, &reason).await?;
        }
        Ok(taken)
    }

    async fn park_poison(&mut self, shard: u16, id: &str, reason: &str) -> Result<(), RedisFault> {
        crash_point!(BeforePark);
        match self.redis.outbox.park(shard, &self.consumer, id, (reason, 0)).await? {
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
