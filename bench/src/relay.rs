//! `relay`: P3's own code empties full outboxes; the baseline is a bare confirmed publisher in the same process, with the
//! same kind of queue, the same window and messages of the same size. Both are measured for `Sizes::relaying` at least.

use super::bar::Bar;
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::purchases::purchase;
use super::sizes::Sizes;
use crate::baseline::rabbit::{PublishRun, publish_confirmed};
use seckill::cli::Failure;
use seckill::domain::fault::Progress;
use seckill::domain::ids::SaleId;
use seckill::domain::message::{self, OrderMessage};
use seckill::p3_relay::{Relay, RelayPlan};
use seckill::runtime::{Worker, now_ms};
use serde_json::json;
use std::time::{Duration, Instant};

/// The least ratio to the bare publisher.
const BAR: f64 = 1.5;

/// P3 as the role runs it.
pub(super) fn relayer(environment: &Environment) -> Relay {
    let (servers, settings) = (&environment.servers, &environment.settings);
    let (redis, rabbit) = (servers.redis.clone(), servers.rabbit.clone());
    let plan = RelayPlan {
        settings: settings.p3_relay.clone(),
        rate_cap: None,
        shards: (0..settings.redis.shards).collect(),
        node: "bench".to_owned(),
    };
    Relay::new(redis.outbox, redis.relay_dlq, &rabbit, plan)
}

/// Steps the relay until the outboxes are empty; the time from the first step to the last one that moved anything.
pub(super) async fn empty(environment: &Environment, relay: &mut Relay, sizes: &Sizes) -> Result<Duration, Failure> {
    let begun = Instant::now();
    let mut moved = begun;
    while begun.elapsed() < sizes.patience {
        environment.go_on()?;
        match relay.step().await? {
            Progress::Moved(_) => moved = Instant::now(),
            Progress::Idle if environment.backlog().await? == 0 => return Ok(moved - begun),
            Progress::Idle => {}
        }
    }
    Err(Failure::Failed(format!("the relay did not empty the outbox within {} s", sizes.patience.as_secs())))
}

/// What the relay has done so far.
pub(super) struct Relayed {
    pub entries: u64,
    pub took: Duration,
    usage: CpuUsage,
}

impl Relayed {
    /// Empties the outboxes, which hold `sizes.entries`.
    pub async fn round(environment: &Environment, relay: &mut Relay, sizes: &Sizes) -> Result<Self, Failure> {
        let watch = CpuMeter::start_as("relay", environment);
        let took = empty(environment, relay, sizes).await?;
        Ok(Self { entries: sizes.entries, took, usage: watch.end() })
    }

    /// With a later round.
    pub fn and(self, later: Self) -> Self {
        Self { entries: self.entries + later.entries, took: self.took + later.took, usage: self.usage.and(later.usage) }
    }

    fn per_s(&self) -> f64 {
        per_s(self.entries, self.took)
    }
}

/// Measures the baseline, and compares.
pub(super) async fn compared(environment: &Environment, relayed: &Relayed, sizes: &Sizes) -> Result<Bar, Failure> {
    let body = sample()?;
    let (window, bundle) = (environment.settings.p3_relay.window_max, environment.settings.p3_relay.bundle_max);
    let bare = PublishRun { count_min: sizes.entries, lasting: sizes.relaying, body: body.as_bytes(), window };
    let (published, took) = publish_confirmed(&environment.servers.rabbit, bare).await?;
    let kind = format!("{:?}", environment.servers.rabbit.queue_type).to_lowercase();
    let Relayed { entries, took: relaying, usage } = relayed;
    let note = format!(
        "{entries} entries in {:.1} s, {kind} queue, window {window}, up to {bundle} in a message; a bare publisher of single ones \
         beside it, {published} in {:.1} s{}",
        relaying.as_secs_f64(),
        took.as_secs_f64(),
        usage.note()
    );
    let more = json!({
        "entries": entries, "bundle_max": bundle, "left": environment.backlog().await?, "took_ms": relaying.as_millis(),
        "bare_entries": published, "bare_took_ms": took.as_millis(), "cpu": usage.json(),
    });
    let bar = Bar::rate("relay", relayed.per_s()).against(Some(per_s(published, took)), BAR);
    Ok(bar.note(note).more(more))
}

/// A message as the script writes it.
fn sample() -> Result<String, Failure> {
    let sale = SaleId::parse("bench-000000-filled-1").map_err(|error| Failure::Failed(error.to_string()))?;
    let purchase = purchase(&sale, 1 << 40)?;
    Ok(message::encode(&OrderMessage { purchase, shard: 0, epoch: 1, number: 100_000, accepted_at_ms: now_ms() }))
}

/// `count` events in the time `took`, as a rate per second.
#[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
pub(super) fn per_s(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(0.000_001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_count_by_its_time_over_all_rounds() {
        assert_eq!(per_s(500, Duration::from_millis(250)), 2_000.0);
        assert!(per_s(1, Duration::ZERO).is_finite());
        let usage = || CpuUsage { seconds: std::collections::BTreeMap::new(), elapsed_s: 1.0, machine: None };
        let round = |entries, ms| Relayed { entries, took: Duration::from_millis(ms), usage: usage() };
        assert_eq!(round(500, 250).and(round(1_500, 750)).per_s(), 2_000.0);
        assert!(sample().is_ok_and(|text| message::decode(text.as_bytes()).is_ok()));
    }
}
