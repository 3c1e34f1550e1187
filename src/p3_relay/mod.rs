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
mod send;
mod sweep;

use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::runtime::Worker;
use crate::store::rabbit::{RabbitConfig, Topology};
use crate::store::redis::{Outbox, RedisFault, RelayDlq};
use entry_sizes::EntrySizes;
use governor::DefaultDirectRateLimiter;
use in_flight::InFlightWindow;
use publisher_session::PublisherSession;
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

/// How many entries a second the relays of one process may send.
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
    topology: Topology,
    settings: config::P3Relay,
    shards: Vec<u16>,
    queues: u16,
    /// Stable over restarts; see `runtime.node`.
    consumer: String,
    limiter: Option<Arc<RateCap>>,
    session: PublisherSession,
    window: InFlightWindow,
    /// Confirmed entries whose deletion is under way: they take no room any more.
    leaving: Leaving,
    /// What the last read of each shard says about the next one.
    entry_sizes: Vec<EntrySizes>,
    /// Which of the shards is read first in this step, so that the backlog of one cannot starve the others.
    first: usize,
    /// Where reading this relay's own pending entries goes on, for each shard; `None`: done.
    own_from: Vec<Option<String>>,
    /// Where looking for orphans goes on, for each shard.
    orphans_from: Vec<String>,
    /// When a shard that had nothing new is read again.
    read_at: Vec<Instant>,
    claim_at: Instant,
    touch_at: Instant,
    gauges_at: Instant,
}

impl Relay {
    /// A relay of some shards, from their outbox to the broker.
    #[must_use]
    pub fn new(outbox: Outbox, relay_dlq: RelayDlq, rabbit: RabbitConfig, plan: RelayPlan) -> Self {
        let RelayPlan { settings, rate_cap, shards, node } = plan;
        let now = Instant::now();
        let lengths = shards.iter().max().map_or(0, |last| usize::from(*last) + 1);
        Self {
            outbox,
            relay_dlq,
            topology: Topology::new(&rabbit),
            queues: rabbit.queues,
            session: PublisherSession::new(rabbit, &settings),
            limiter: rate_cap,
            settings,
            shards,
            consumer: format!("relay-{node}"),
            window: InFlightWindow::default(),
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

    /// How many orders may be taken in: up to a window. While a broker cannot be reached, the few entries that probe it.
    fn room(&self) -> usize {
        let entries = self.session.breaker.entries_max(self.settings.window_max, self.settings.probe_max);
        let staying = self.window.orders().saturating_sub(self.leaving.orders);
        let orders = self.settings.window_max.saturating_sub(staying);
        (entries + self.leaving.entries).saturating_sub(self.window.len()).min(orders)
    }

    /// All shards, each step beginning with another one.
    fn shards_in_turn(&self) -> Vec<u16> {
        let (before, from) = self.shards.split_at(self.first.min(self.shards.len()));
        [from, before].concat()
    }

    async fn work(&mut self) -> Result<Progress, RedisFault> {
        self.first = (self.first + 1) % self.shards.len().max(1);
        let mut moved = self.delete_and_read().await?;
        self.send().await;
        self.collect_confirms(CONFIRM_WAIT).await;
        moved += self.window.confirmed_count() + self.window.failed_count();
        self.count_failed().await?;
        self.session.redeclare().await;
        self.touch().await?;
        self.gauges().await?;
        Ok(if moved > 0 { Progress::Moved(moved) } else { Progress::Idle })
    }
}

/// Whether the stream or its group is not there (yet, or any more).
fn no_group(fault: &RedisFault) -> bool {
    matches!(fault, RedisFault::Refused(error) if error.starts_with("NOGROUP"))
}

impl Worker for Relay {
    fn name(&self) -> &'static str {
        "p3_relay"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        match self.work().await {
            Ok(progress) => Ok(progress),
            // From the very beginning, never from `$` (window 33). The entries of the window are in no pending list then:
            // touching removes them, and they are read again.
            Err(fault) if no_group(&fault) => {
                tracing::warn!(phase = "p3_relay", "an outbox has no consumer group: making one that reads all of it");
                for shard in self.shards.iter().copied() {
                    self.outbox.ensure(shard).await.map_err(Fault::back_off)?;
                }
                Ok(Progress::Moved(1))
            }
            Err(fault) => Err(Fault::back_off(fault)),
        }
    }

    async fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_WAIT;
        while !self.session.confirms.is_empty() && Instant::now() < deadline {
            self.collect_confirms(CONFIRM_WAIT).await;
        }
        if let Err(error) = self.finish_confirmed().await {
            tracing::warn!(phase = "p3_relay", %error, "confirmed entries stay pending, the next relay sends them again");
        }
    }
}
