//! Reads every second how far P4 is behind, and opens and closes the entry. Part of the api role.
//!
//! Input: outbox lengths and the ledger records of the probes, from Redis. Output: a command to [`Overload`], gauges, one log
//! line for each change. When Redis does not answer nothing changes: without Redis nothing is accepted anyway.

use super::Overload;
use super::control::{EASE, EntryCommand, EntryControl, LoadReading};
use crate::config;
use crate::domain::fault::{Fault, Progress};
use crate::domain::ids::RequestId;
use crate::orders::rows::RequestRows;
use crate::runtime::Worker;
use crate::store::redis::{Outbox, Progressed, RedisFault, RequestLedger};
use crate::telemetry::{ENTRY_LAG_S, ENTRY_OPEN};
use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Pause between two readings.
const READ_EVERY: Duration = Duration::from_secs(1);

/// What the monitor reads in Redis.
pub(crate) struct OverloadHandles {
    /// For the length of the backlog.
    pub(crate) outbox: Outbox,
    /// For how far the probes have come.
    pub(crate) ledger: RequestLedger,
}

/// Keeps an [`Overload`] up with the servers.
pub(crate) struct OverloadMonitor {
    overload: Overload,
    redis: OverloadHandles,
    requests: RequestRows,
    shards: u16,
    backlog_max: u64,
    lag_max: Duration,
    control: EntryControl,
    read_at: Option<Instant>,
    /// Accepted and landed at the last reading.
    counts: (u64, u64),
}

impl OverloadMonitor {
    /// Watches over `overload` with the bounds of the settings.
    #[must_use]
    pub(crate) fn new(
        overload: Overload,
        redis: OverloadHandles,
        requests: RequestRows,
        shards: u16,
        settings: &config::P1Entry,
    ) -> Self {
        Self {
            overload,
            redis,
            requests,
            shards,
            backlog_max: settings.backlog_max,
            lag_max: Duration::from_millis(settings.lag_max_ms),
            control: EntryControl::new(settings.adaptive),
            read_at: None,
            counts: (0, 0),
        }
    }

    fn pressure(&self, lag: Duration, backlog: u64) -> f64 {
        let of_lag = if self.lag_max.is_zero() { 0.0 } else { lag.as_secs_f64() / self.lag_max.as_secs_f64() };
        of_lag.max(backlog as f64 / self.backlog_max.max(1) as f64)
    }

    /// Asks the ledgers how far the probes have come.
    async fn ask_ledgers(&self) -> Result<(), Fault> {
        let ledgers = self.overload.probes(|probes| probes.waiting());
        let asked = ledgers.into_iter().map(|((sale, shard), request_ids)| async move {
            let progressed = match self.redis.ledger.progress(&sale, shard, &request_ids).await {
                Ok(progressed) => progressed,
                // Of several servers one is away: its purchases must not close the entry to the others' buyers. It takes
                // in nothing itself.
                Err(RedisFault::NotSent(_) | RedisFault::Unknown(_)) if self.shards > 1 => {
                    vec![Progressed::Unmarked; request_ids.len()]
                }
                Err(fault) => return Err(fault),
            };
            Ok::<_, RedisFault>(request_ids.into_iter().zip(progressed).collect::<Vec<_>>())
        });
        let (mut landed, mut unmarked) = (HashSet::new(), HashSet::new());
        for (request_id, progressed) in futures::future::try_join_all(asked).await.map_err(Fault::back_off)?.concat() {
            match progressed {
                Progressed::Landed => landed.insert(request_id),
                Progressed::Unmarked => unmarked.insert(request_id),
                Progressed::Queued => false,
            };
        }
        self.overload.probes(|probes| {
            probes.landed(|request_id| landed.contains(&request_id));
            probes.forget(|request_id| unmarked.contains(&request_id));
        });
        Ok(())
    }

    /// The ledger is marked after the database committed, and only as well as it can be: before the entry is closed over it,
    /// the database is asked itself. One that does not answer has landed nothing either.
    async fn ask_database(&self) {
        let waiting: Vec<RequestId> = self.overload.probes(|probes| probes.waiting()).into_values().flatten().collect();
        match self.requests.outcomes_of(&waiting).await {
            Ok(outcomes) => {
                self.overload.probes(|probes| probes.landed(|request_id| outcomes.contains_key(&request_id)));
            }
            Err(error) => tracing::debug!(phase = "p1_entry", %error, "what has landed cannot be asked"),
        }
    }

    fn seen(&mut self, pressure: f64, now: Instant) -> LoadReading {
        let (accepted, landed) = self.overload.probes(|probes| probes.counts());
        let since = self.read_at.map_or(READ_EVERY, |at| now.saturating_duration_since(at)).as_secs_f64().max(0.001);
        let before = std::mem::replace(&mut self.counts, (accepted, landed));
        let a_second = |now: u64, before: u64| now.saturating_sub(before) as f64 / since;
        LoadReading { pressure, admitted_per_s: a_second(accepted, before.0), landed_per_s: a_second(landed, before.1) }
    }
}

fn log_change(command: EntryCommand, before: EntryCommand, lag: Duration, backlog: u64) {
    let lag_ms = u64::try_from(lag.as_millis()).unwrap_or(u64::MAX);
    match (before.closed, command.closed) {
        (false, true) => {
            metrics::counter!("seckill_p1_entry_closed_total").increment(1);
            tracing::warn!(
                phase = "p1_entry",
                lag_ms,
                backlog,
                "the entry closes to new purchases until what was accepted has landed; check relay, broker, consumer, database"
            );
        }
        (true, false) => tracing::info!(phase = "p1_entry", lag_ms, backlog, "the entry is open again"),
        (false, false) | (true, true) => {}
    }
    match (before.limit_per_s, command.limit_per_s) {
        (None, Some(limit_per_s)) => {
            tracing::warn!(
                phase = "p1_entry",
                lag_ms,
                backlog,
                limit_per_s,
                "orders are persisted too slowly, letting in fewer purchases"
            );
        }
        (Some(_), None) => {
            tracing::info!(phase = "p1_entry", lag_ms, backlog, "new purchases are not limited any more");
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

impl Worker for OverloadMonitor {
    fn name(&self) -> &'static str {
        "p1_entry"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        if self.read_at.is_some_and(|at| at.elapsed() < READ_EVERY) {
            return Ok(Progress::Idle);
        }
        metrics::gauge!("seckill_p1_entry_in_flight_count").set(self.overload.in_flight() as f64);
        let backlog = self.redis.outbox.longest(self.shards).await.map_err(Fault::back_off)?;
        self.ask_ledgers().await?;
        let lag_now = |overload: &Overload| overload.probes(|probes| probes.lag(Instant::now()));
        let mut lag = lag_now(&self.overload);
        if self.pressure(lag, 0) >= EASE {
            self.ask_database().await;
            lag = lag_now(&self.overload);
        }
        let now = Instant::now();
        let seen = self.seen(self.pressure(lag, backlog), now);
        self.read_at = Some(now);
        let command = self.control.decide(seen);
        let before = self.overload.apply(command);
        log_change(command, before, lag, backlog);
        ENTRY_OPEN.set(&metrics::gauge!("seckill_p1_entry_open"), if command.closed { 0.0 } else { 1.0 });
        metrics::gauge!("seckill_p1_entry_limit_per_s").set(command.limit_per_s.map_or(0.0, f64::from));
        ENTRY_LAG_S.set(&metrics::gauge!("seckill_p1_entry_lag_seconds"), lag.as_secs_f64());
        metrics::gauge!("seckill_p1_entry_backlog_count").set(backlog as f64);
        Ok(Progress::Idle)
    }
}
