//! What reading alone never finds: entries of dead relays, entries in no pending list, names of relays that are gone; and the
//! gauges.
//!
//! Every living relay does this by itself, without a leader: each check and claim is one script, so two never take the same. All
//! shards are asked at once: one after the other, 64 shards of a server far away would take a second of waiting.

use super::{GAUGES_EVERY, Relay};
use crate::faults::{crash_point, left_out};
use crate::store::redis::{OrphanPage, OutboxEntry, PageFrom, RedisFault, SentEntry, TakenOver};
use futures::future::{join_all, try_join};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Entries checked for orphans, for each shard and claim interval. Before the last delivered id there are only entries in some
/// relay's window, and orphans, so a few pages see all of them.
const ORPHANS_CHECKED: usize = 500;
/// A relay that holds nothing and was silent for this many claim times is forgotten by name.
const FORGET_AFTER_CLAIMS: u64 = 10;
/// Names forgotten at once; a fleet with new names at every start leaves no more than these in one interval.
const FORGET_MAX: usize = 16;
/// Most ids of deleted entries in one line of the log.
const DELETED_NAMED: usize = 10;

/// The answer to one claim.
type Claimed = Result<TakenOver, RedisFault>;

impl Relay {
    /// Takes over entries that other relays left, every quarter of the claim time. Returns how many.
    pub(super) async fn sweep(&mut self) -> usize {
        if Instant::now() < self.claim_at || left_out!(TakeOver) {
            return 0;
        }
        let orphans = if left_out!(OrphanSearch) { 0 } else { self.take_orphans().await };
        let taken = self.take_over().await + orphans;
        self.forget_names().await;
        if !self.shards_in_turn().is_empty() {
            self.claim_at = Instant::now() + Duration::from_millis(self.settings.claim_idle_ms / 4);
        }
        taken
    }

    /// Those of some shards that there is room for, each with the entries it may bring. All of them are asked at once.
    fn shares(&self, mut shards: Vec<u16>) -> Vec<(u16, usize)> {
        let room = self.room();
        shards.truncate(room);
        let each = room / shards.len().max(1);
        shards.into_iter().map(|shard| (shard, self.entries_for(shard, each))).collect()
    }

    /// Entries of relays that were silent for too long, all pages of all shards; one page while an order queue is in trouble: what
    /// it cannot take fills no window, and two relays would hand each other a whole backlog.
    async fn take_over(&mut self) -> usize {
        let mut taken = 0;
        let mut start_of: HashMap<u16, String> = self.shards.iter().map(|shard| (*shard, "0-0".to_owned())).collect();
        while !start_of.is_empty() {
            let shards = self.shards_in_turn().into_iter().filter(|shard| start_of.contains_key(shard)).collect();
            let shares = self.shares(shards);
            if shares.is_empty() {
                break;
            }
            for (shard, claimed) in self.claim(&start_of, &shares).await {
                let next = claimed.as_ref().ok().map(|page| page.next.clone()).filter(|next| next != "0-0");
                match next {
                    Some(next) if !self.has_troubled_queue() => start_of.insert(shard, next),
                    Some(_) | None => start_of.remove(&shard),
                };
                let taken_over = match claimed {
                    Ok(page) => self.took_over(shard, page).await,
                    Err(fault) => Err(fault),
                };
                taken += self.noted(shard, taken_over).unwrap_or_default();
            }
        }
        taken
    }

    async fn claim(&self, start_of: &HashMap<u16, String>, shares: &[(u16, usize)]) -> Vec<(u16, Claimed)> {
        let idle_ms = self.settings.claim_idle_ms;
        let claims = shares.iter().map(|(shard, count)| {
            let start = start_of.get(shard).map_or("0-0", String::as_str);
            self.outbox.take_over(*shard, &self.consumer, idle_ms, PageFrom { start, count: *count })
        });
        let claimed = join_all(claims).await;
        shares.iter().map(|(shard, _)| *shard).zip(claimed).collect()
    }

    async fn took_over(&mut self, shard: u16, page: TakenOver) -> Result<usize, RedisFault> {
        let TakenOver { entries, deleted, .. } = page;
        if !entries.is_empty() {
            crash_point!(AfterClaim);
            tracing::info!(phase = "p3_relay", shard, count = entries.len(), "took over entries of another relay");
        }
        let taken = self.accept(shard, entries).await?;
        if !deleted.is_empty() {
            self.deleted_while_pending(shard, &deleted).await?;
        }
        Ok(taken)
    }

    /// One page of the search for entries that were delivered once and are in no pending list (windows 30, 44), on each shard.
    async fn take_orphans(&mut self) -> usize {
        let shares = self.shares(self.shards_in_turn());
        let searches = shares.iter().map(|(shard, taken_max)| {
            let start = self.orphans_from.get(usize::from(*shard)).map_or("-", String::as_str);
            let page = OrphanPage { start, checked_max: ORPHANS_CHECKED, taken_max: *taken_max };
            self.outbox.take_orphans(*shard, &self.consumer, page)
        });
        let found_orphans = join_all(searches).await;
        let mut taken = 0;
        for ((shard, _), found) in shares.into_iter().zip(found_orphans) {
            let Some((orphans, next)) = self.noted(shard, found) else { continue };
            if let Some(from) = self.orphans_from.get_mut(usize::from(shard)) {
                *from = next;
            }
            let found = self.found_orphans(shard, orphans).await;
            taken += self.noted(shard, found).unwrap_or_default();
        }
        taken
    }

    async fn found_orphans(&mut self, shard: u16, orphans: Vec<OutboxEntry>) -> Result<usize, RedisFault> {
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

    async fn forget_names(&mut self) {
        let idle_ms = self.settings.claim_idle_ms.saturating_mul(FORGET_AFTER_CLAIMS);
        let shards = self.shards_in_turn();
        let forgets = shards.iter().map(|shard| self.outbox.forget_relays(*shard, &self.consumer, idle_ms, FORGET_MAX));
        for (shard, gone) in shards.iter().zip(join_all(forgets).await) {
            if let Some(gone) = self.noted(*shard, gone).filter(|gone| !gone.is_empty()) {
                tracing::info!(phase = "p3_relay", shard, ?gone, "forgot relays that are gone and left nothing");
            }
        }
    }

    /// Entries that were deleted while a relay had them (window 31). No process of this system does that. The ledger still has
    /// the requests and P5 persists them; here they are only reported, and their attempts forgotten.
    pub(super) async fn deleted_while_pending(&mut self, shard: u16, ids: &[String]) -> Result<(), RedisFault> {
        metrics::counter!("seckill_p3_relay_deleted_total").increment(ids.len() as u64);
        tracing::error!(
            phase = "p3_relay",
            shard,
            count = ids.len(),
            ids = ?ids.iter().take(DELETED_NAMED).collect::<Vec<_>>(),
            "outbox entries were deleted before they were relayed: the audit finds their requests and persists them"
        );
        let entries: Vec<SentEntry> = ids.iter().map(|id| SentEntry { id: id.clone(), orders: 1 }).collect();
        self.outbox.done(shard, &self.consumer, &entries).await.map(|_deleted| ())
    }

    pub(super) async fn gauges(&mut self) {
        if Instant::now() < self.gauges_at {
            return;
        }
        self.gauges_at = Instant::now() + GAUGES_EVERY;
        let shards = self.shards_in_turn();
        let reads = shards.iter().map(|shard| try_join(self.outbox.depth(*shard), self.relay_dlq.count(*shard)));
        for (shard, read) in shards.iter().zip(join_all(reads).await) {
            let Some(((length, pending), parked)) = self.noted(*shard, read) else { continue };
            let label = shard.to_string();
            metrics::gauge!("seckill_p3_relay_outbox_count", "shard" => label.clone()).set(length as f64);
            metrics::gauge!("seckill_p3_relay_pending_count", "shard" => label.clone()).set(pending as f64);
            metrics::gauge!("seckill_p3_relay_dlq_count", "shard" => label).set(parked as f64);
        }
        let first = self.shards.first().map(ToString::to_string).unwrap_or_default();
        let orders: usize = self.lanes.iter().map(|lane| lane.window.orders()).sum();
        metrics::gauge!("seckill_p3_relay_window_count", "first_shard" => first).set(orders as f64);
    }

    /// Whether the breaker of some order queue is open. Set again and again, because the relays of a process share the gauge.
    pub(super) fn report_breakers(&self) {
        let is_open = self.lanes.iter().any(|lane| !lane.is_trusted());
        let gauge = metrics::gauge!("seckill_p3_relay_breaker_open");
        crate::telemetry::RELAY_BREAKER_OPEN.set(&gauge, f64::from(u8::from(is_open)));
    }
}
