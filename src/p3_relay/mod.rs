//! P3 relay: outbox → RabbitMQ, confirm first, then delete.
//!
//! Input: outbox entries of every shard. Output: messages in the order queues, each with one order or with several of the same
//! queue, or entries in the relay DLQ. The payload is opaque here. The entries of a message share its confirm and nothing else:
//! each has its own attempts.
//!
//! What a crash leaves, by the state of an entry: *read, not sent*: it is this relay's by name (pending, or in its processing
//! list) and read again at its next start, or taken over by another relay after `claim_idle_ms`; *sent, not confirmed*: the
//! same, and the message may come twice, which P4 bears; *confirmed, not deleted*: the same; *deleted*: the broker has it.
//! Attempts are counted in Redis, so a new owner goes on counting.

mod breaker;
mod entry;
mod entry_sizes;
mod finish;
mod in_flight;
mod intake;
mod publisher_session;
mod queue_lane;
mod send;
mod set_aside;
mod shard_trouble;
mod sweep;
mod traced;

use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::runtime::Worker;
use crate::store::rabbit::{PublishEvent, RabbitConfig};
use crate::store::redis::{Outbox, RedisFault, RelayDlq};
use entry_sizes::EntrySizes;
use futures::future::select_all;
use governor::DefaultDirectRateLimiter;
use queue_lane::QueueLane;
use shard_trouble::ShardTrouble;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest wait for confirms inside one step; a stop is noticed after it.
const CONFIRM_WAIT: Duration = Duration::from_millis(20);
/// Gauges are read this often.
const GAUGES_EVERY: Duration = Duration::from_secs(1);
/// A stopping relay waits this long for outstanding confirms.
const DRAIN_WAIT: Duration = Duration::from_secs(3);
/// Ids in one script call: far below what Lua's `unpack` can take (about 8,000), and a millisecond of Redis' time.
const IDS_MAX: usize = 500;

/// How many orders a second the relays of one process may send, all together.
pub(crate) type RateCap = DefaultDirectRateLimiter;

/// The cap of `p3_relay.rate_per_s`; none at 0.
#[must_use]
pub(crate) fn rate_cap(settings: &config::P3Relay) -> Option<Arc<RateCap>> {
    let rate = std::num::NonZeroU32::new(settings.rate_per_s)?;
    Some(Arc::new(governor::RateLimiter::direct(governor::Quota::per_second(rate))))
}

/// Entries and their orders that are about to leave the window.
#[derive(Debug, Clone, Copy, Default)]
struct Leaving {
    entries: usize,
    orders: usize,
}

/// What one relay is to do.
pub struct RelayPlan {
    /// The section `p3_relay`.
    pub settings: config::P3Relay,
    /// Shared by the relays of a process.
    pub rate_cap: Option<Arc<RateCap>>,
    /// All shards, or those of one Redis server.
    pub shards: Vec<u16>,
    /// The relay's name in the consumer group.
    pub node: String,
}

/// A relay for some shards: all of them, or those of one Redis server, so that a server that is down stops its own shards only.
pub struct Relay {
    outbox: Outbox,
    relay_dlq: RelayDlq,
    settings: config::P3Relay,
    shards: Vec<u16>,
    /// By order queue.
    lanes: Vec<QueueLane>,
    trouble: ShardTrouble,
    /// Stable over restarts; see `runtime.node`.
    consumer: String,
    /// Confirmed entries whose deletion is under way: they take no room any more.
    leaving: Leaving,
    /// What the last read of each shard says about the next one.
    entry_sizes: Vec<EntrySizes>,
    /// Which of the shards is read first in this step, so that the backlog of one cannot starve the others.
    first: usize,
    /// Where reading this relay's own pending entries goes on, for each shard; `None`: done.
    own_from: Vec<Option<String>>,
    /// Where the search for orphans goes on, for each shard.
    orphans_from: Vec<String>,
    /// When a shard that had nothing new is read again.
    read_at: Vec<Instant>,
    claim_at: Instant,
    touch_at: Instant,
    gauges_at: Instant,
    /// Whether entries of an order queue in trouble are set aside, for those of others.
    makes_room: bool,
}

impl Relay {
    /// A relay of some shards, from their outbox to the broker.
    #[must_use]
    pub fn new(outbox: Outbox, relay_dlq: RelayDlq, rabbit: &RabbitConfig, plan: RelayPlan) -> Self {
        let RelayPlan { settings, rate_cap, shards, node } = plan;
        let now = Instant::now();
        let lengths = shards.iter().max().map_or(0, |last| usize::from(*last) + 1);
        Self {
            makes_room: rabbit.queues > 1 && outbox.holds_many(),
            outbox,
            relay_dlq,
            lanes: (0..rabbit.queues).map(|queue| QueueLane::new(rabbit, queue, &settings, rate_cap.clone())).collect(),
            settings,
            shards,
            trouble: ShardTrouble::default(),
            consumer: format!("relay-{node}"),
            leaving: Leaving::default(),
            entry_sizes: vec![EntrySizes::default(); lengths],
            first: 0,
            own_from: vec![Some("0".to_owned()); lengths],
            orphans_from: vec!["-".to_owned(); lengths],
            read_at: vec![now; lengths],
            claim_at: now,
            touch_at: now,
            gauges_at: now,
        }
    }

    /// How many orders may be taken in: up to a window. Lanes in trouble have a share of their own, so that they take no room from
    /// the others. While no lane can reach the broker, the few entries that probe it.
    fn room(&self) -> usize {
        let is_reachable = self.lanes.iter().any(QueueLane::is_trusted);
        let counted = self.lanes.iter().filter(|lane| !self.makes_room || !is_reachable || !lane.is_troubled());
        let (held, orders) =
            counted.fold((0, 0), |sum, lane| (sum.0 + lane.window.len(), sum.1 + lane.window.orders()));
        let (window_max, probe_max) = (self.settings.window_max, self.settings.probe_max);
        let entries = if is_reachable { window_max } else { probe_max.min(window_max) };
        let staying = orders.saturating_sub(self.leaving.orders);
        (entries + self.leaving.entries).saturating_sub(held).min(window_max.saturating_sub(staying))
    }

    /// Whether entries of some order queue wait for it to become whole.
    fn has_troubled_queue(&self) -> bool {
        self.lanes.iter().any(QueueLane::is_troubled)
    }

    /// All shards but those that are left alone, each step beginning with another one.
    fn shards_in_turn(&self) -> Vec<u16> {
        let (before, from) = self.shards.split_at(self.first.min(self.shards.len()));
        let now = Instant::now();
        [from, before].concat().into_iter().filter(|shard| !self.trouble.is_left_alone(*shard, now)).collect()
    }

    async fn work(&mut self) -> Result<Progress, RedisFault> {
        self.first = (self.first + 1) % self.shards.len().max(1);
        let mut moved = self.delete_and_read().await;
        self.send().await;
        self.collect_confirms(CONFIRM_WAIT).await;
        moved +=
            self.lanes.iter().map(|lane| lane.window.confirmed_count() + lane.window.failed_count()).sum::<usize>();
        self.count_failed().await;
        self.set_aside_and_take_back();
        self.lanes.iter_mut().for_each(|lane| lane.session.redeclare());
        self.touch().await;
        self.report_breakers();
        self.gauges().await;
        match self.trouble.of_all(&self.shards) {
            Some(fault) => Err(fault),
            None if moved > 0 => Ok(Progress::Moved(moved)),
            None => Ok(Progress::Idle),
        }
    }

    /// Publishes on every lane what its breaker lets it.
    async fn send(&mut self) {
        let mut is_away = false;
        for lane in &mut self.lanes {
            is_away |= lane.send().await.is_err();
        }
        if is_away {
            // Lanes without a connection believe what this one learned, until they have tried: else a relay with an idle lane
            // reads a whole backlog that it can send nowhere.
            for lane in self.lanes.iter_mut().filter(|lane| lane.session.publisher.is_none()) {
                lane.session.breaker.outage("another order queue's connection cannot be made");
            }
        }
    }

    /// Reads the broker's answers; waits for the first one when messages are unanswered and there is nothing else to do.
    async fn collect_confirms(&mut self, wait: Duration) {
        self.lanes.iter_mut().for_each(QueueLane::take_answers);
        let is_unanswered = self.lanes.iter().any(|lane| !lane.session.confirms.is_empty());
        if is_unanswered
            && self.lanes.iter().all(QueueLane::is_idle)
            && let Some((lane, event)) = self.first_answer(Instant::now() + wait).await
            && let Some(lane) = self.lanes.get_mut(lane)
        {
            // The step goes on with whatever has arrived beside it.
            lane.answered(event);
            lane.take_answers();
        }
        self.lanes.iter_mut().for_each(QueueLane::check_silence);
    }

    /// The first answer on any lane that waits for one, with the lane's place.
    async fn first_answer(&mut self, deadline: Instant) -> Option<(usize, PublishEvent)> {
        let lanes = self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.session.confirms.is_empty());
        let waits: Vec<_> = lanes
            .map(|(at, lane)| Box::pin(async move { lane.next_answer(deadline).await.map(|event| (at, event)) }))
            .collect();
        if waits.is_empty() { None } else { select_all(waits).await.0 }
    }

    /// Makes room for queues that work, and reads again what was set aside for queues that work again.
    fn set_aside_and_take_back(&mut self) {
        if !self.makes_room {
            return;
        }
        self.lanes.iter_mut().for_each(QueueLane::set_aside_surplus);
        let back: Vec<u16> = self.lanes.iter_mut().flat_map(QueueLane::taken_back).collect();
        back.into_iter().for_each(|shard| self.own_next(shard, Some("0".to_owned())));
    }
}

impl Worker for Relay {
    fn name(&self) -> &'static str {
        "p3_relay"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        for shard in self.trouble.without_group() {
            // From the very beginning, never from `$` (window 33). The entries of the window are in no pending list then:
            // touching removes them, and they are read again.
            tracing::warn!(
                phase = "p3_relay",
                shard,
                "an outbox has no consumer group: making one that reads all of it"
            );
            self.outbox.ensure(shard).await.map_err(Fault::back_off)?;
        }
        self.work().await.map_err(Fault::back_off)
    }

    async fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_WAIT;
        while self.lanes.iter().any(|lane| !lane.session.confirms.is_empty()) && Instant::now() < deadline {
            self.collect_confirms(CONFIRM_WAIT).await;
        }
        self.finish_confirmed().await;
        if self.lanes.iter().any(|lane| lane.window.confirmed_count() > 0) {
            tracing::warn!(phase = "p3_relay", "confirmed entries stay pending, the next relay sends them again");
        }
    }
}
