//! P3 relay: outbox stream → RabbitMQ, confirm first, then delete.
//!
//! Input: outbox entries of every shard. Output: messages in the order queues, or entries in the relay DLQ. The payload is
//! opaque here.
//!
//! A crash leaves, at each line of an entry's way: *read, not sent* — it is pending for this relay's name and read again at
//! its next start, or taken over by another relay after `claim_idle_ms`; *sent, not confirmed* — the same, and the message
//! may come twice, which P4 bears; *confirmed, not deleted* — the same; *deleted* — the broker has it. Attempts are counted
//! in Redis, so a new owner goes on counting.

mod hand;
mod intake;
mod send;

use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::runtime::Worker;
use crate::store::rabbit::{Confirms, Publisher, RabbitConfig, Topology};
use crate::store::redis::{RedisFault, RedisStore};
use governor::DefaultDirectRateLimiter;
use hand::{Failed, InHand, Waiting};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Waiting for confirms inside one step; a stop is noticed within it.
const CONFIRM_WAIT: Duration = Duration::from_millis(20);
/// Pause between two attempts to reach the broker.
const CONNECT_PAUSE: Duration = Duration::from_millis(250);
/// Gauges are read this often.
const GAUGES_EVERY: Duration = Duration::from_secs(1);
/// A stopping relay waits this long for outstanding confirms.
const DRAIN_WAIT: Duration = Duration::from_secs(3);

/// The relay of one process, for all shards.
///
/// Every entry it holds is in exactly one of the lists below; a list is emptied only after what it stands for is done, so a
/// fault in between keeps everything.
pub struct Relay {
    redis: RedisStore,
    rabbit: RabbitConfig,
    topology: Topology,
    settings: config::P3Relay,
    shards: u16,
    queues: u16,
    /// Stable over restarts; see `runtime.node`.
    consumer: String,
    limiter: Option<DefaultDirectRateLimiter>,
    publisher: Option<Publisher>,
    connect_at: Instant,
    /// Read and not sent.
    ready: Vec<InHand>,
    /// Sent and not answered.
    confirms: Confirms<InHand>,
    /// Confirmed and not deleted.
    confirmed: Vec<InHand>,
    /// Failed and not counted.
    failed: Vec<Failed>,
    /// Counted, sent again later.
    waiting: Vec<Waiting>,
    /// Ids of everything in the lists above, by shard.
    held: HashSet<(u16, String)>,
    /// Where reading this relay's own pending entries goes on, for each shard; `None`: done.
    own_from: Vec<Option<String>>,
    claim_at: Instant,
    touch_at: Instant,
    gauges_at: Instant,
}

impl Relay {
    /// A relay that calls itself `node` in the consumer group.
    #[must_use]
    pub fn new(redis: RedisStore, rabbit: RabbitConfig, settings: config::P3Relay, shards: u16, node: &str) -> Self {
        let now = Instant::now();
        Self {
            redis,
            topology: Topology::new(&rabbit),
            queues: rabbit.queues,
            rabbit,
            limiter: std::num::NonZeroU32::new(settings.rate_per_s)
                .map(|rate| governor::RateLimiter::direct(governor::Quota::per_second(rate))),
            settings,
            shards,
            consumer: format!("relay-{node}"),
            publisher: None,
            connect_at: now,
            ready: Vec::new(),
            confirms: Confirms::new(),
            confirmed: Vec::new(),
            failed: Vec::new(),
            waiting: Vec::new(),
            held: HashSet::new(),
            own_from: vec![Some("0".to_owned()); usize::from(shards)],
            claim_at: now,
            touch_at: now,
            gauges_at: now,
        }
    }

    fn room(&self) -> usize {
        self.settings.window_max.saturating_sub(self.held.len())
    }

    async fn work(&mut self) -> Result<Progress, RedisFault> {
        let mut moved = self.take_in().await?;
        self.send().await;
        self.collect(CONFIRM_WAIT).await;
        moved += self.confirmed.len() + self.failed.len();
        self.finish_confirmed().await?;
        self.count_failed().await?;
        self.touch().await?;
        self.gauges().await?;
        Ok(if moved > 0 { Progress::Moved(moved) } else { Progress::Idle })
    }
}

impl Worker for Relay {
    fn name(&self) -> &'static str {
        "p3_relay"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        self.work().await.map_err(Fault::back_off)
    }

    async fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_WAIT;
        while !self.confirms.is_empty() && Instant::now() < deadline {
            self.collect(CONFIRM_WAIT).await;
        }
        if let Err(error) = self.finish_confirmed().await {
            tracing::warn!(phase = "p3_relay", %error, "confirmed entries stay pending, the next relay sends them again");
        }
    }
}
