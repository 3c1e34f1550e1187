//! What follows in Redis from the broker's verdicts: deleting, counting, parking; and keeping what is in the hand.

use super::hand::{Place, Ticket};
use super::{IDS_MAX, Relay};
use crate::domain::states::RequestEvent;
use crate::faults::crash_point;
use crate::runtime::grown;
use crate::store::redis::{Parking, RedisFault};
use futures::future::join_all;
use std::collections::HashSet;
use std::time::{Duration, Instant};

impl Relay {
    /// Deletes what the broker confirmed, on all shards at once. What one shard's answer is changes nothing for the others.
    pub(super) async fn finish_confirmed(&mut self) -> Result<(), RedisFault> {
        loop {
            let of_shards = self.shards.iter().map(|shard| (*shard, self.hand.confirmed_of(*shard, IDS_MAX)));
            let parts: Vec<_> = of_shards.filter(|(_, (tickets, _))| !tickets.is_empty()).collect();
            if parts.is_empty() {
                return Ok(());
            }
            crash_point!(AfterConfirm);
            let done = parts.iter().map(|(shard, (_, ids))| self.redis.outbox.done(*shard, &self.consumer, ids));
            let done = join_all(done).await;
            crash_point!(AfterDone);
            let mut failed = None;
            for ((_, (tickets, _)), done) in parts.into_iter().zip(done) {
                match done {
                    Ok(_deleted) => self.finished(tickets),
                    Err(fault) => failed = failed.or(Some(fault)),
                }
            }
            if let Some(fault) = failed {
                return Err(fault);
            }
        }
    }

    fn finished(&mut self, tickets: Vec<Ticket>) {
        for mut item in tickets.into_iter().filter_map(|ticket| self.hand.let_go(ticket)) {
            item.happened(RequestEvent::Confirmed);
            tracing::debug!(phase = "p3_relay", request_id = %item.request_id, "the broker has it");
        }
    }

    /// Counts failed attempts; entries with attempts left wait for their next one, the others are parked.
    pub(super) async fn count_failed(&mut self) -> Result<(), RedisFault> {
        for shard in self.shards.clone() {
            loop {
                let (tickets, ids) = self.hand.failed_of(shard, IDS_MAX);
                if ids.is_empty() {
                    break;
                }
                // A reply lost here counts twice, which only shortens the retries.
                let counts = self.redis.outbox.failed(shard, &self.consumer, &ids).await?;
                for (ticket, attempts) in tickets.into_iter().zip(counts) {
                    self.counted(ticket, attempts).await?;
                }
            }
        }
        Ok(())
    }

    async fn counted(&mut self, ticket: Ticket, attempts: u32) -> Result<(), RedisFault> {
        let reason = self.hand.reason(ticket).unwrap_or_default().to_owned();
        let Some(item) = self.hand.get_mut(ticket) else { return Ok(()) };
        let request_id = item.request_id.clone();
        if attempts == 0 {
            tracing::debug!(phase = "p3_relay", %request_id, %reason, "failed here, but another relay has it by now");
            self.hand.let_go(ticket);
        } else if attempts < self.settings.attempts_max {
            item.happened(RequestEvent::PublishFailed);
            let (first, longest) = (self.settings.backoff_ms, self.settings.backoff_max_ms);
            let pause = grown(Duration::from_millis(first), attempts - 1, Duration::from_millis(longest));
            tracing::debug!(phase = "p3_relay", %request_id, attempts, %reason, "will be sent again");
            self.hand.put(ticket, Place::Waiting(Instant::now() + pause));
        } else {
            let (shard, id) = (item.shard, item.id.clone());
            crash_point!(BeforePark);
            // After an error it stays failed: counted once more, and parked then.
            let parking = self.redis.outbox.park(shard, &self.consumer, &id, (&reason, attempts)).await?;
            crash_point!(AfterPark);
            match (parking, self.hand.let_go(ticket)) {
                (Parking::Moved, Some(mut item)) => {
                    item.happened(RequestEvent::PublishSpent);
                    tracing::error!(phase = "p3_relay", %request_id, attempts, %reason, "parked in the relay DLQ");
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

    /// Keeps what is in the hand from being taken over, and lets go of what was.
    pub(super) async fn touch(&mut self) -> Result<(), RedisFault> {
        if Instant::now() < self.touch_at {
            return Ok(());
        }
        for shard in self.shards.clone() {
            for part in self.hand.ids_of(shard).chunks(IDS_MAX) {
                let mine: HashSet<String> =
                    self.redis.outbox.touch(shard, &self.consumer, part).await?.into_iter().collect();
                let lost: Vec<&String> = part.iter().filter(|id| !mine.contains(*id)).collect();
                if !lost.is_empty() {
                    tracing::warn!(
                        phase = "p3_relay",
                        shard,
                        count = lost.len(),
                        "another relay has these entries now"
                    );
                }
                lost.into_iter().for_each(|id| self.hand.lost(shard, id));
            }
        }
        self.touch_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 3);
        Ok(())
    }
}
