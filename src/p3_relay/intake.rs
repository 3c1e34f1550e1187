//! Where a relay's entries come from: its own unfinished ones, those that others left, and new ones.

use super::Relay;
use super::entry::InHand;
use crate::domain::states::{P3Relay, State};
use crate::faults::{CrashPoint, Mechanism};
use crate::store::redis::{Entry, Parking, RedisFault};
use crate::telemetry::count;

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
        for shard in self.shards_in_turn() {
            taken += self.take_new(shard).await?;
        }
        Ok(taken)
    }

    /// Entries that were read for this relay's name and never finished: by its life before this one, or by a reply that got
    /// lost (window 26). Whatever fails, the drain goes on from the same place at the next step.
    async fn take_own(&mut self, shard: u16, from: String) -> Result<usize, RedisFault> {
        if Mechanism::OwnPending.is_off() {
            return Ok(0);
        }
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let read = self.redis.outbox_own(shard, &self.consumer, &from, room).await;
        let (entries, next) = read.inspect_err(|fault| self.doubt(shard, fault))?;
        if !entries.is_empty() {
            CrashPoint::AfterRead.reach();
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

    async fn take_new(&mut self, shard: u16) -> Result<usize, RedisFault> {
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let read = self.redis.outbox_new(shard, &self.consumer, room).await;
        let entries = read.inspect_err(|fault| self.doubt(shard, fault))?;
        if !entries.is_empty() {
            CrashPoint::AfterRead.reach();
        }
        self.accept(shard, entries).await
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
        CrashPoint::BeforePark.reach();
        match self.redis.outbox_park(shard, &self.consumer, id, (reason, 0)).await? {
            Parking::Moved => {
                CrashPoint::AfterPark.reach();
                count(State::P3(P3Relay::RelayDlq), 1);
                tracing::error!(phase = "p3_relay", shard, entry = %id, %reason, "parked in the relay DLQ");
            }
            Parking::NotOurs => {}
            Parking::Gone => self.deleted_while_pending(shard, &[id.to_owned()]).await?,
        }
        Ok(())
    }
}
