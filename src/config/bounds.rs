//! Bounds of single keys and relations between keys: the numbers, for the check at the start and for the printed reference.

use super::sections::{P1Entry, Settings};
use crate::domain::message::BUNDLE_MAX;
use crate::domain::policy::ORDER_UNITS_MAX;
use crate::domain::trace::MILLION;

const HOUR_MS: u64 = 3_600_000;
/// The least `p1_entry.cache_stale_max_ms`. While a server stands still a sale is read again each half second (`p1_entry/catalog`
/// says so in a test): with less, what was read would be too old to decide before the next reading.
pub(crate) const CACHE_STALE_MAX_LEAST_MS: u64 = 500;

/// Passes the value, the least and the largest allowed value of every number to `within`.
pub(super) fn bounds(s: &Settings, within: &mut dyn FnMut(&'static str, u64, u64, u64)) {
    within("runtime.drain_ms", s.runtime.drain_ms, 0, HOUR_MS);
    within("traces.sample_per_million", s.traces.sample_per_million.into(), 0, MILLION.into());
    within("traces.queue_max", s.traces.queue_max as u64, 1, 1 << 20);
    within("traces.export_timeout_ms", s.traces.export_timeout_ms, 10, 60_000);
    within("http.listen_backlog", u64::from(s.http.listen_backlog), 128, 65_535);
    within("http.workers_count", s.http.workers_count as u64, 0, 1024);
    within("http.body_bytes_max", s.http.body_bytes_max as u64, 64, 1 << 20);
    within("http.body_timeout_ms", s.http.body_timeout_ms, 10, HOUR_MS);
    within("http.head_timeout_ms", s.http.head_timeout_ms, 10, HOUR_MS);
    within("http.keep_alive_s", s.http.keep_alive_s, 1, 3600);
    within("http.write_timeout_s", s.http.write_timeout_s, 1, 3600);
    within("http.connections_max", s.http.connections_max as u64, 1, 1_000_000);
    within("http.waiters_max", s.http.waiters_max as u64, 0, 1_000_000_000);
    within("auth.jwks_refresh_s", s.auth.jwks_refresh_s, 60, 3600);
    within("auth.reread_s", s.auth.reread_s, 1, 3600);
    within("auth.leeway_s", s.auth.leeway_s, 0, 300);
    within("auth.verified_max", s.auth.verified_max as u64, 0, 10_000_000);
    within("risk.timeout_ms", s.risk.timeout_ms, 10, 10_000);
    within("risk.in_flight_max", s.risk.in_flight_max as u64, 1, 10_000);
    within("risk.remember_s", s.risk.remember_s, 1, 600);
    within("risk.remembered_max", s.risk.remembered_max, 1, 10_000_000);
    within("lines.entries_max", s.lines.entries_max, 1, 5_000_000);
    within("redis.shards", s.redis.shards.into(), 1, 64);
    within("redis.outbox_format", s.redis.outbox_format.into(), 1, 2);
    within("redis.wait_replicas", s.redis.wait_replicas.into(), 0, 16);
    within("redis.wait_timeout_ms", s.redis.wait_timeout_ms, 1, 60_000);
    within("redis.command_timeout_ms", s.redis.command_timeout_ms, 10, 60_000);
    within("redis.connect_timeout_ms", s.redis.connect_timeout_ms, 10, 60_000);
    within("rabbitmq.queues", s.rabbitmq.queues.into(), 1, 256);
    within("rabbitmq.heartbeat_s", s.rabbitmq.heartbeat_s.into(), 2, 60);
    within("rabbitmq.connect_timeout_ms", s.rabbitmq.connect_timeout_ms, 100, 60_000);
    within("mysql.pool_max", s.mysql.pool_max as u64, 2, 1000);
    within("mysql.pool_wait_ms", s.mysql.pool_wait_ms, 10, 60_000);
    within("mysql.connect_timeout_ms", s.mysql.connect_timeout_ms, 10, 60_000);
    within("mysql.statement_timeout_ms", s.mysql.statement_timeout_ms, 10, 600_000);
    of_phases(s, within);
}

fn of_phases(s: &Settings, within: &mut dyn FnMut(&'static str, u64, u64, u64)) {
    // No limit with 0; above it a number that no machine reaches.
    const RATE_MAX: u64 = 1_000_000_000;
    within("p1_entry.user_rate_per_s", s.p1_entry.user_rate_per_s.into(), 0, RATE_MAX);
    within("p1_entry.global_rate_per_s", s.p1_entry.global_rate_per_s.into(), 0, RATE_MAX);
    within("p1_entry.in_flight_max", s.p1_entry.in_flight_max as u64, 1, 1_000_000);
    within("p1_entry.backlog_max", s.p1_entry.backlog_max, 1, 1 << 40);
    within("p1_entry.lag_max_ms", s.p1_entry.lag_max_ms, 0, 24 * HOUR_MS);
    within("p1_entry.token_ttl_s", s.p1_entry.token_ttl_s, 1, 30 * 86_400);
    within("p1_entry.quantity_max", s.p1_entry.quantity_max.into(), 1, ORDER_UNITS_MAX.into());
    within("p1_entry.room_release_per_s", s.p1_entry.room_release_per_s.into(), 1, 1_000_000);
    within("p1_entry.room_places_max", s.p1_entry.room_places_max, 1, 100_000_000);
    within("p1_entry.cache_ttl_ms", s.p1_entry.cache_ttl_ms, 10, 60_000);
    within("p1_entry.cache_stale_max_ms", s.p1_entry.cache_stale_max_ms, CACHE_STALE_MAX_LEAST_MS, 60_000);
    within("p1_entry.missing_ttl_ms", s.p1_entry.missing_ttl_ms, 10, 60_000);
    within("p1_entry.cache_sales_max", s.p1_entry.cache_sales_max, 1, 1 << 32);
    // 2 or 3 arguments a request; Lua's unpack holds just under 8000 values.
    within("p2_reserve.group_max", s.p2_reserve.group_max as u64, 1, 1000);
    within("p2_reserve.queue_max", s.p2_reserve.queue_max as u64, 1, 1 << 24);
    within("p2_reserve.deadline_ms", s.p2_reserve.deadline_ms, 10, 60_000);
    within("p3_relay.attempts_max", s.p3_relay.attempts_max.into(), 1, 1_000_000);
    within("p3_relay.backoff_ms", s.p3_relay.backoff_ms, 1, HOUR_MS);
    within("p3_relay.backoff_max_ms", s.p3_relay.backoff_max_ms, 1, HOUR_MS);
    within("p3_relay.claim_idle_ms", s.p3_relay.claim_idle_ms, 10, 24 * HOUR_MS);
    within("p3_relay.confirm_timeout_ms", s.p3_relay.confirm_timeout_ms, 10, HOUR_MS);
    within("p3_relay.window_max", s.p3_relay.window_max as u64, 1, 10_000);
    within("p3_relay.bundle_max", s.p3_relay.bundle_max as u64, 1, BUNDLE_MAX as u64);
    within("p3_relay.probe_max", s.p3_relay.probe_max as u64, 1, 10_000);
    within("p3_relay.rate_per_s", s.p3_relay.rate_per_s.into(), 0, RATE_MAX);
    within("p3_relay.idle_ms", s.p3_relay.idle_ms, 1, 10_000);
    within("p4_persist.attempts_max", s.p4_persist.attempts_max.into(), 1, 1_000_000);
    within("p4_persist.retry_delay_ms", s.p4_persist.retry_delay_ms, 10, HOUR_MS);
    within("p4_persist.retry_delay_max_ms", s.p4_persist.retry_delay_max_ms, 1, 24 * HOUR_MS);
    within("p4_persist.writers_count", s.p4_persist.writers_count.into(), 1, 16);
    within("p4_persist.prefetch", s.p4_persist.prefetch.into(), 1, 65_535);
    // More are written as several transactions (`orders/persist`).
    within("p4_persist.group_max", s.p4_persist.group_max as u64, 1, 1_000);
    within("p4_persist.breaker_failures", s.p4_persist.breaker_failures.into(), 1, 1_000_000);
    within("p4_persist.breaker_open_ms", s.p4_persist.breaker_open_ms, 1, HOUR_MS);
    within("p5_reconcile.interval_ms", s.p5_reconcile.interval_ms, 10, 24 * HOUR_MS);
    within("p5_reconcile.window_ms", s.p5_reconcile.window_ms, 10, 24 * HOUR_MS);
    within("p5_reconcile.quiet_ms", s.p5_reconcile.quiet_ms, 10, HOUR_MS);
    within("p5_reconcile.ledger_retention_s", s.p5_reconcile.ledger_retention_s, 1, 3650 * 86_400);
    within("p5_reconcile.warm_ahead_ms", s.p5_reconcile.warm_ahead_ms, 0, 24 * HOUR_MS);
    within("p5_reconcile.auto_close_after_s", s.p5_reconcile.auto_close_after_s, 0, 3650 * 86_400);
    within("p5_reconcile.findings_max", s.p5_reconcile.findings_max as u64, 1, 100_000);
    within("p6_fulfil.interval_ms", s.p6_fulfil.interval_ms, 10, HOUR_MS);
    within("p6_fulfil.group_max", s.p6_fulfil.group_max.into(), 1, 1_000);
    within("p6_fulfil.rate_per_s", s.p6_fulfil.rate_per_s.into(), 1, 1_000_000);
    within("webhook_delivery.deadline_ms", s.webhook_delivery.deadline_ms, 100, 60_000);
    within("webhook_delivery.in_flight_max", s.webhook_delivery.in_flight_max.into(), 1, 1_024);
    within("webhook_delivery.in_flight_each_max", s.webhook_delivery.in_flight_each_max.into(), 1, 256);
    within("webhook_delivery.retention_s", s.webhook_delivery.retention_s, 1, 365 * 86_400);
}

/// Two keys whose values must be in order.
pub(super) struct Relation {
    /// The smaller one, with its value.
    pub low: (&'static str, u64),
    /// The larger one, with its value.
    pub high: (&'static str, u64),
    /// Whether they must differ.
    pub(crate) strictly: bool,
    /// What would happen otherwise.
    pub why: &'static str,
    /// Whether it counts with these settings.
    pub counts: bool,
}

impl Relation {
    /// Whether the values are not in order.
    pub(super) fn is_broken(&self) -> bool {
        let wrong = if self.strictly { self.low.1 >= self.high.1 } else { self.low.1 > self.high.1 };
        self.counts && wrong
    }

    /// The words for a person whose values are not in order.
    pub(super) fn complaint(&self) -> String {
        let ((low, low_value), (high, high_value)) = (self.low, self.high);
        let wrong = if self.strictly { "is not below" } else { "is above" };
        format!("{low}: {low_value} {wrong} {high} ({high_value}); {}", self.why)
    }
}

/// Places that the webhooks may hold together; without any of them those of one.
fn places_of_webhooks(s: &Settings) -> u64 {
    let webhooks = s.webhooks.len().max(1) as u64;
    webhooks.saturating_mul(s.webhook_delivery.in_flight_each_max.into())
}

const fn below(low: (&'static str, u64), high: (&'static str, u64), why: &'static str) -> Relation {
    Relation { low, high, strictly: true, why, counts: true }
}

const fn at_most(low: (&'static str, u64), high: (&'static str, u64), why: &'static str) -> Relation {
    Relation { low, high, strictly: false, why, counts: true }
}

const fn fresh_decides(entry: &P1Entry) -> Relation {
    at_most(
        ("p1_entry.cache_ttl_ms", entry.cache_ttl_ms),
        ("p1_entry.cache_stale_max_ms", entry.cache_stale_max_ms),
        "a cached sale that is fresh would be too old to decide",
    )
}

/// Every relation between two keys.
pub(super) fn relations(s: &Settings) -> Vec<Relation> {
    let (relay, persist) = (&s.p3_relay, &s.p4_persist);
    let claim = ("p3_relay.claim_idle_ms", relay.claim_idle_ms);
    let retry_max = ("p4_persist.retry_delay_max_ms", persist.retry_delay_max_ms);
    vec![
        below(
            ("p3_relay.confirm_timeout_ms", relay.confirm_timeout_ms),
            claim,
            "another relay would take over entries that still wait for their confirm",
        ),
        at_most(
            ("p3_relay.backoff_ms", relay.backoff_ms),
            ("p3_relay.backoff_max_ms", relay.backoff_max_ms),
            "the first pause cannot exceed the longest",
        ),
        at_most(
            ("p4_persist.retry_delay_ms", persist.retry_delay_ms),
            retry_max,
            "the first delay cannot exceed the longest",
        ),
        at_most(
            retry_max,
            ("p4_persist.retry_delay_ms × 32768", persist.retry_delay_ms.saturating_mul(1 << 15)),
            "each doubling of the delay is a queue, and there are at most 16",
        ),
        at_most(
            ("p4_persist.group_max", persist.group_max as u64),
            ("p4_persist.prefetch", persist.prefetch.into()),
            "a group cannot be larger than what may be held unacknowledged",
        ),
        at_most(
            claim,
            ("p5_reconcile.window_ms", s.p5_reconcile.window_ms),
            "the audit would call requests lost that a relay is about to take over",
        ),
        fresh_decides(&s.p1_entry),
        below(
            ("p1_entry.token_ttl_s", s.p1_entry.token_ttl_s),
            ("p5_reconcile.ledger_retention_s", s.p5_reconcile.ledger_retention_s),
            "a replay must always find its ledger record",
        ),
        Relation {
            counts: s.redis.wait_replicas > 0,
            ..below(
                ("redis.wait_timeout_ms", s.redis.wait_timeout_ms),
                ("redis.command_timeout_ms", s.redis.command_timeout_ms),
                "the wait for replicas is part of the call (only with redis.wait_replicas above 0)",
            )
        },
        at_most(
            ("webhook_delivery.in_flight_each_max × webhooks", places_of_webhooks(s)),
            ("webhook_delivery.in_flight_max", s.webhook_delivery.in_flight_max.into()),
            "slow receivers would hold the places of the others",
        ),
        at_most(
            ("redis.command_timeout_ms", s.redis.command_timeout_ms),
            ("p2_reserve.deadline_ms", s.p2_reserve.deadline_ms),
            "a request must outlive its script call, or every slow answer is unknown",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Layers;

    fn webhooks(count: usize) -> String {
        let rest =
            "url = \"https://h/\"\nsecrets = [\"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\"]\nevents = [\"order.paid\"]";
        (0..count).map(|n| format!("[[webhooks]]\nname = \"w{n}\"\n{rest}\n")).collect()
    }

    #[test]
    fn webhooks_that_could_take_each_others_places_are_refused() {
        let with = |count: usize, places: &str| {
            let file = std::env::temp_dir().join(format!("seckill-places-{}.toml", std::process::id()));
            std::fs::write(&file, format!("{}[webhook_delivery]\n{places}\n", webhooks(count))).unwrap();
            let settings = Settings::load(&Layers { files: vec![file.clone()], set: vec![] });
            std::fs::remove_file(file).unwrap();
            settings.map_err(|error| error.to_string())
        };
        for (webhooks, places) in [
            (8, ""),
            (2, "in_flight_max = 8\nin_flight_each_max = 4"),
            (1, "in_flight_max = 8\nin_flight_each_max = 8"),
            (0, "in_flight_max = 8\nin_flight_each_max = 8"),
        ] {
            assert!(with(webhooks, places).is_ok(), "{webhooks} {places}");
        }
        let refused = |webhooks, places| with(webhooks, places).unwrap_err();
        // A slow receiver with five places leaves three, of which the other may have five.
        let two = refused(2, "in_flight_max = 8\nin_flight_each_max = 5");
        assert!(two.contains("in_flight_each_max × webhooks: 10 is above webhook_delivery.in_flight_max (8)"), "{two}");
        for (webhooks, places) in [
            (8, "in_flight_max = 63"),
            (3, "in_flight_max = 2\nin_flight_each_max = 1"),
            (1, "in_flight_max = 8\nin_flight_each_max = 9"),
            (0, "in_flight_max = 8\nin_flight_each_max = 9"),
        ] {
            let complaint = refused(webhooks, places);
            assert!(
                complaint.contains("webhook_delivery.in_flight_each_max × webhooks"),
                "{webhooks} {places}: {complaint}"
            );
        }
    }
}
