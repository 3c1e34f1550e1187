//! What reading alone never finds: entries of dead relays, entries in no pending list, names of relays that are gone; and the
//! gauges.
//!
//! Every living relay does this by itself, without a leader: each check and claim is one script, so two never take the same.

use super::{GAUGES_EVERY, Relay};
use crate::faults::{crash_point, left_out};
use crate::store::redis::{OrphanPage, PageFrom, RedisFault, SentEntry, TakenOver};
use std::time::{Duration, Instant};

/// Entries checked for orphans, for each shard and claim interval. Before the last delivered id there are only entries in some
/// relay's window, and orphans, so a few pages see all of them.
const ORPHANS_LOOKED_AT: usize = 500;
/// A relay that holds nothing and was silent for this many claim times is forgotten by name.
const FORGET_AFTER_CLAIMS: u64 = 10;
/// Names forgotten at once; a fleet with new names at every start leaves no more than these in one interval.
const FORGET_MAX: usize = 16;

impl Relay {
    /// Takes over entries that other relays left, every quarter of the claim time. Returns how many.
    pub(super) async fn sweep(&mut self) -> Result<usize, RedisFault> {
        if Instant::now() < self.claim_at || left_out!(TakeOver) {
            return Ok(0);
        }
        let mut taken = 0;
        for shard in self.shards_in_turn() {
            taken += self.take_over(shard).await?;
            taken += self.take_orphans(shard).await?;
            self.forget_names(shard).await?;
        }
        self.claim_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 4);
        Ok(taken)
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
            let taken_over = self
                .outbox
                .take_over(
                    shard,
                    &self.consumer,
                    idle_ms,
                    PageFrom { start: &start, count: self.entries_for(shard, room) },
                )
                .await;
            let TakenOver { entries, next, deleted } = taken_over.inspect_err(|fault| self.doubt(shard, fault))?;
            if !deleted.is_empty() {
                self.deleted_while_pending(shard, &deleted).await?;
            }
            if !entries.is_empty() {
                crash_point!(AfterClaim);
                tracing::info!(phase = "p3_relay", shard, count = entries.len(), "took over entries of another relay");
            }
            taken += self.accept(shard, entries).await?;
            if next == "0-0" {
                return Ok(taken);
            }
            start = next;
        }
    }

    /// One page of the search for entries that were delivered once and are in no pending list (windows 30, 44).
    async fn take_orphans(&mut self, shard: u16) -> Result<usize, RedisFault> {
        let Some(start) = self.orphans_from.get(usize::from(shard)).cloned() else { return Ok(0) };
        let room = self.room();
        if room == 0 {
            return Ok(0);
        }
        let taken_max = self.entries_for(shard, room);
        let page = OrphanPage { start: &start, looked_at_max: ORPHANS_LOOKED_AT, taken_max };
        let found = self.outbox.take_orphans(shard, &self.consumer, page).await;
        let (orphans, next) = found.inspect_err(|fault| self.doubt(shard, fault))?;
        if let Some(from) = self.orphans_from.get_mut(usize::from(shard)) {
            *from = next;
        }
        if !orphans.is_empty() {
            metrics::counter!("seckill_p3_relay_orphans_total").increment(orphans.len() as u64);
            tracing::error!(
                phase = "p3_relay",
                shard,
                count = orphans.len(),
                "entries were in no pending list, taken over: was a consumer deleted or the group moved?"
            );
        }
        self.accept(shard, orphans).await
    }

    async fn forget_names(&mut self, shard: u16) -> Result<(), RedisFault> {
        let idle_ms = self.settings.claim_idle_ms.saturating_mul(FORGET_AFTER_CLAIMS);
        let gone = self.outbox.forget_relays(shard, &self.consumer, idle_ms, FORGET_MAX).await?;
        if !gone.is_empty() {
            tracing::info!(phase = "p3_relay", shard, ?gone, "forgot relays that are gone and left nothing");
        }
        Ok(())
    }

    /// Entries that were deleted while a relay had them (window 31). No process of this system does that. The ledger still has
    /// the requests and P5 persists them; here they are only reported, and their attempts forgotten.
    pub(super) async fn deleted_while_pending(&mut self, shard: u16, ids: &[String]) -> Result<(), RedisFault> {
        metrics::counter!("seckill_p3_relay_deleted_total").increment(ids.len() as u64);
        tracing::error!(
            phase = "p3_relay",
            shard,
            ?ids,
            "outbox entries were deleted before they were relayed: the audit finds their requests and persists them"
        );
        let entries: Vec<SentEntry> = ids.iter().map(|id| SentEntry { id: id.clone(), orders: 1 }).collect();
        self.outbox.done(shard, &self.consumer, &entries).await.map(|_deleted| ())
    }

    pub(super) async fn gauges(&mut self) -> Result<(), RedisFault> {
        if Instant::now() < self.gauges_at {
            return Ok(());
        }
        self.gauges_at = Instant::now() + GAUGES_EVERY;
        self.session.breaker.report();
        for shard in self.shards.clone() {
            let (length, pending) = self.outbox.depth(shard).await?;
            let parked = self.relay_dlq.count(shard).await?;
            let label = shard.to_string();
            metrics::gauge!("seckill_p3_relay_outbox_count", "shard" => label.clone()).set(length as f64);
            metrics::gauge!("seckill_p3_relay_pending_count", "shard" => label.clone()).set(pending as f64);
            metrics::gauge!("seckill_p3_relay_dlq_count", "shard" => label).set(parked as f64);
        }
        let first = self.shards.first().map(ToString::to_string).unwrap_or_default();
        metrics::gauge!("seckill_p3_relay_window_count", "first_shard" => first).set(self.window.len() as f64);
        Ok(())
    }
}
