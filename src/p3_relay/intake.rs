//! Where a relay's entries come from: its own unfinished ones, those of relays that died, and new ones.

use super::hand::InHand;
use super::{GAUGES_EVERY, Relay};
use crate::domain::states::{P3Relay, State};
use crate::store::redis::{Entry, RedisFault};
use crate::telemetry::count;
use std::time::{Duration, Instant};

impl Relay {
    /// Fills the window. Returns how many entries were taken in.
    pub(super) async fn take_in(&mut self) -> Result<usize, RedisFault> {
        let mut taken = 0;
        for shard in 0..self.shards {
            taken += match self.own_from[usize::from(shard)].take() {
                Some(from) => self.take_own(shard, from).await?,
                None => 0,
            };
        }
        if Instant::now() >= self.claim_at {
            for shard in 0..self.shards {
                taken += self.take_over(shard).await?;
            }
            self.claim_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 4);
        }
        for shard in 0..self.shards {
            taken += self.take_new(shard).await?;
        }
        Ok(taken)
    }

    /// Entries that were read for this relay's name and never finished: by its life before this one, or by a reply that got
    /// lost (window 26).
    async fn take_own(&mut self, shard: u16, from: String) -> Result<usize, RedisFault> {
        // Whatever happens below, the drain goes on from here at the next step.
        self.own_from[usize::from(shard)] = Some(from.clone());
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let entries = self.read(shard, &from, room).await?;
        self.own_from[usize::from(shard)] = entries.last().map(|last| last.id.clone());
        self.accept(shard, entries).await
    }

    async fn take_over(&mut self, shard: u16) -> Result<usize, RedisFault> {
        let mut taken = 0;
        let mut start = "0-0".to_owned();
        loop {
            let room = self.room();
            if room == 0 {
                return Ok(taken);
            }
            let idle_ms = self.settings.claim_idle_ms;
            let (entries, next, deleted) =
                match self.redis.claim_outbox(shard, &self.consumer, idle_ms, (&start, room)).await {
                    Err(RedisFault::Refused(error)) if error.starts_with("NOGROUP") => return Ok(taken),
                    done => done?,
                };
            if !deleted.is_empty() {
                // Nobody of ours deletes a pending entry. The ledger still knows the requests; P5 lands them.
                tracing::error!(phase = "p3_relay", shard, ?deleted, "entries were deleted while pending");
            }
            if !entries.is_empty() {
                tracing::info!(phase = "p3_relay", shard, count = entries.len(), "took over entries of another relay");
            }
            taken += self.accept(shard, entries).await?;
            if next == "0-0" {
                return Ok(taken);
            }
            start = next;
        }
    }

    async fn take_new(&mut self, shard: u16) -> Result<usize, RedisFault> {
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let entries = self.read(shard, ">", room).await?;
        self.accept(shard, entries).await
    }

    async fn read(&mut self, shard: u16, after: &str, count: usize) -> Result<Vec<Entry>, RedisFault> {
        match self.redis.read_outbox(shard, &self.consumer, after, count).await {
            // The stream or its group is not there yet (or is gone): from the very beginning, never from `$` (window 33).
            Err(RedisFault::Refused(error)) if error.starts_with("NOGROUP") => {
                self.redis.ensure_outbox(shard).await?;
                Ok(Vec::new())
            }
            Err(fault @ (RedisFault::Unknown(_) | RedisFault::Contract(_))) => {
                // The entries may be this relay's now without it having seen them.
                self.own_from[usize::from(shard)] = Some("0".to_owned());
                Err(fault)
            }
            done => done,
        }
    }

    /// Takes entries into the hand; unreadable ones go to the relay DLQ at once, blocking nobody (C6).
    async fn accept(&mut self, shard: u16, entries: Vec<Entry>) -> Result<usize, RedisFault> {
        let mut taken = 0;
        let mut poison = Vec::new();
        for entry in entries {
            if self.held.contains(&(shard, entry.id.clone())) {
                continue;
            }
            taken += 1;
            match InHand::read(shard, &entry) {
                Ok(item) => {
                    tracing::debug!(phase = "p3_relay", request_id = %item.request_id, entry = %entry.id, "read");
                    self.held.insert((shard, entry.id));
                    self.ready.push(item);
                }
                Err(reason) => poison.push((entry.id, reason)),
            }
        }
        for (id, reason) in poison {
            // Failing here leaves it pending; it is read or claimed again.
            self.redis.outbox_park(shard, &self.consumer, &id, (&reason, 0)).await?;
            count(State::P3(P3Relay::RelayDlq), 1);
            tracing::error!(phase = "p3_relay", shard, entry = %id, %reason, "parked in the relay DLQ");
        }
        Ok(taken)
    }

    /// Keeps what is in the hand from being taken over, and lets go of what was.
    pub(super) async fn touch(&mut self) -> Result<(), RedisFault> {
        if Instant::now() < self.touch_at {
            return Ok(());
        }
        for shard in 0..self.shards {
            let ids: Vec<String> = self.held.iter().filter(|(s, _)| *s == shard).map(|(_, id)| id.clone()).collect();
            for part in ids.chunks(500) {
                let mine = self.redis.outbox_touch(shard, &self.consumer, part).await?;
                let lost: Vec<&String> = part.iter().filter(|id| !mine.contains(id)).collect();
                if !lost.is_empty() {
                    tracing::warn!(
                        phase = "p3_relay",
                        shard,
                        count = lost.len(),
                        "entries were taken over by another relay"
                    );
                    self.waiting.retain(|waiting| waiting.item.shard != shard || !lost.contains(&&waiting.item.id));
                    self.ready.retain(|item| item.shard != shard || !lost.contains(&&item.id));
                    // Those that were sent stay until their confirm: deleting after one's own confirm is always right.
                    let in_flight: Vec<String> = lost.into_iter().cloned().collect();
                    for id in in_flight {
                        self.held.remove(&(shard, id));
                    }
                }
            }
        }
        self.touch_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 3);
        Ok(())
    }

    pub(super) async fn gauges(&mut self) -> Result<(), RedisFault> {
        if Instant::now() < self.gauges_at {
            return Ok(());
        }
        self.gauges_at = Instant::now() + GAUGES_EVERY;
        for shard in 0..self.shards {
            let (length, pending) = self.redis.outbox_depth(shard).await?;
            let parked = self.redis.parked_count(shard).await?;
            let label = shard.to_string();
            metrics::gauge!("seckill_p3_relay_outbox_count", "shard" => label.clone()).set(length as f64);
            metrics::gauge!("seckill_p3_relay_pending_count", "shard" => label.clone()).set(pending as f64);
            metrics::gauge!("seckill_p3_relay_dlq_count", "shard" => label).set(parked as f64);
        }
        metrics::gauge!("seckill_p3_relay_window_count").set(self.held.len() as f64);
        Ok(())
    }
}
