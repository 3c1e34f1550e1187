//! Bounds of single keys and relations between keys, checked before anything starts.
//!
//! Every complaint names the key, its value and what would be accepted; all of them are reported at once, so that a
//! person mends the file in one go.

use super::sections::{Algorithm, RedisMode, Settings};
use crate::domain::trace::MILLION;

/// Everything that is wrong with the values; empty when nothing is.
#[must_use]
pub fn complaints(s: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    addresses(s, &mut found);
    own_bounds(s, &mut found);
    bounds(s, &mut found);
    relations(s, &mut found);
    found
}

/// What the api role needs on top: keys to check tokens with.
#[must_use]
pub fn api_complaints(s: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let (secret, pem, jwks) = (s.auth.secret.expose(), s.auth.key_file.as_str(), s.auth.jwks_file.as_str());
    match s.auth.algorithm {
        Algorithm::Hs256 => {
            if secret.len() < 32 {
                found.push(format!("auth.secret: has {} bytes, HS256 needs 32 or more", secret.len()));
            }
            if !pem.is_empty() || !jwks.is_empty() {
                found.push("auth.key_file, auth.jwks_file: must be empty with auth.algorithm = \"HS256\"".into());
            }
        }
        Algorithm::Rs256 | Algorithm::EdDsa => {
            if pem.is_empty() == jwks.is_empty() {
                found.push("auth.key_file, auth.jwks_file: exactly one must be given with RS256 or EdDSA".into());
            }
            if !secret.is_empty() {
                found.push("auth.secret: must be empty with RS256 or EdDSA".into());
            }
        }
    }
    let token_secret = s.p1_entry.token_secret.expose();
    if token_secret.len() < 32 {
        found.push(format!("p1_entry.token_secret: has {} bytes, 32 or more are needed", token_secret.len()));
    } else if token_secret == secret {
        found.push("p1_entry.token_secret: is the same as auth.secret, they must differ".into());
    }
    if s.auth.issuer.is_empty() || s.auth.audience.is_empty() {
        found.push("auth.issuer, auth.audience: must not be empty, every access token is checked for them".into());
    }
    found
}

fn addresses(s: &Settings, found: &mut Vec<String>) {
    for (key, listen) in [("http.listen", &s.http.listen), ("admin.listen", &s.admin.listen)] {
        if listen.parse::<std::net::SocketAddr>().is_err() {
            found.push(format!("{key}: {listen:?} is not an address, expected ip:port, e.g. 127.0.0.1:8080"));
        }
    }
    found.extend(collector(&s.traces.otlp_endpoint).map(|why| format!("traces.otlp_endpoint: {why}")));
    found.extend(s.http.cors_origins.complaints().map(|why| format!("http.cors_origins: {why}")));
    let urls = [
        ("redis.url", &s.redis.url, redis_schemes(s.redis.mode)),
        ("rabbitmq.url", &s.rabbitmq.url, ["amqp", "amqps"]),
        ("mysql.url", &s.mysql.url, ["mysql", "mysqls"]),
    ];
    for (key, url, [plain, encrypted]) in urls {
        if ![plain, encrypted].contains(&url.scheme()) {
            let scheme = url.scheme();
            found.push(format!(
                "{key}: {url:?} has scheme {scheme:?}, expected {plain}:// or, to encrypt, {encrypted}://"
            ));
        }
    }
    encryption(s, found);
    if s.redis.mode == RedisMode::Sentinel && !s.redis.url.expose().contains("sentinelServiceName=") {
        found.push("redis.url: names no master, add ?sentinelServiceName=NAME as the sentinels have it".into());
    }
    for (key, prefix) in [("redis.prefix", &s.redis.prefix), ("rabbitmq.prefix", &s.rabbitmq.prefix)] {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-' || b == b'.';
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(plain) {
            found.push(format!("{key}: {prefix:?}, expected 1 to 64 characters of A-Z a-z 0-9 _ - ."));
        }
    }
    let token = s.admin.token.expose();
    if !token.is_empty() && token.len() < 16 {
        found.push(format!("admin.token: has {} bytes, expected none or 16 or more", token.len()));
    }
}

/// What is wrong with a collector's address; nothing when there is none.
fn collector(endpoint: &str) -> Option<String> {
    const EXPECTED: &str = "expected the whole address, e.g. http://127.0.0.1:4318/v1/traces";
    if endpoint.is_empty() {
        return None;
    }
    match reqwest::Url::parse(endpoint) {
        Ok(url) if url.scheme() == "https" => Some("https:// is not supported, put a collector beside it".into()),
        Ok(url) if url.scheme() != "http" || url.path().len() < 2 => {
            Some(format!("{endpoint:?} is not enough, {EXPECTED}"))
        }
        Ok(url) if !url.username().is_empty() => {
            Some("has a user, give it in OTEL_EXPORTER_OTLP_HEADERS instead".into())
        }
        Ok(_) => None,
        Err(error) => Some(format!("{endpoint:?}: {error}, {EXPECTED}")),
    }
}

/// Files for a connection that is not encrypted are a mistake that would show nowhere else.
fn encryption(s: &Settings, found: &mut Vec<String>) {
    let servers = [
        ("redis", &s.redis.url, [&s.redis.tls_ca_file, &s.redis.tls_cert_file, &s.redis.tls_key_file]),
        ("rabbitmq", &s.rabbitmq.url, [&s.rabbitmq.tls_ca_file, &s.rabbitmq.tls_cert_file, &s.rabbitmq.tls_key_file]),
        ("mysql", &s.mysql.url, [&s.mysql.tls_ca_file, &s.mysql.tls_cert_file, &s.mysql.tls_key_file]),
    ];
    for (section, url, files) in servers {
        if !url.is_encrypted() && files.iter().any(|file| !file.is_empty()) {
            let scheme = url.scheme();
            found.push(format!(
                "{section}.tls_ca_file, tls_cert_file, tls_key_file: given, but {section}.url begins with {scheme}://, which \
                 does not encrypt; write it with an s ({}), or leave them empty",
                if section == "redis" { "rediss" } else if section == "mysql" { "mysqls" } else { "amqps" }
            ));
        }
        let [_, cert, key] = files;
        if cert.is_empty() != key.is_empty() {
            found.push(format!("{section}.tls_cert_file, {section}.tls_key_file: one is empty, expected both or none"));
        }
    }
    // The driver would take these from the url; one of them switches the verification off.
    for parameter in ["require_ssl=", "verify_ca=", "verify_identity=", "built_in_roots="] {
        if s.mysql.url.expose().contains(parameter) {
            found.push(format!(
                "mysql.url: has {parameter}…, expected the scheme mysqls:// and mysql.tls_ca_file instead"
            ));
        }
    }
}

/// The scheme says the same as the mode, so that neither can be forgotten; the second one encrypts.
fn redis_schemes(mode: RedisMode) -> [&'static str; 2] {
    match mode {
        RedisMode::Single => ["redis", "rediss"],
        RedisMode::Sentinel => ["redis-sentinel", "rediss-sentinel"],
        RedisMode::Cluster => ["redis-cluster", "rediss-cluster"],
    }
}

const HOUR_MS: u64 = 3_600_000;

/// A bound that a value is held to.
fn within(found: &mut Vec<String>) -> impl FnMut(&str, u64, u64, u64) {
    move |key, value, low, high| {
        if !(low..=high).contains(&value) {
            found.push(format!("{key}: {value}, expected {low} to {high}"));
        }
    }
}

/// Of the process and its edges.
fn own_bounds(s: &Settings, found: &mut Vec<String>) {
    let mut within = within(found);
    within("runtime.drain_ms", s.runtime.drain_ms, 0, HOUR_MS);
    within("traces.sample_per_million", s.traces.sample_per_million.into(), 0, MILLION.into());
    within("traces.queue_max", s.traces.queue_max as u64, 1, 1 << 20);
    within("traces.export_timeout_ms", s.traces.export_timeout_ms, 10, 60_000);
    within("http.workers_count", s.http.workers_count as u64, 0, 1024);
    within("http.body_bytes_max", s.http.body_bytes_max as u64, 64, 1 << 20);
    within("http.body_timeout_ms", s.http.body_timeout_ms, 10, HOUR_MS);
    within("http.head_timeout_ms", s.http.head_timeout_ms, 10, HOUR_MS);
    within("http.keep_alive_s", s.http.keep_alive_s, 1, 3600);
    within("http.connections_max", s.http.connections_max as u64, 1, 1_000_000);
    within("auth.leeway_s", s.auth.leeway_s, 0, 300);
}

/// Of the servers and the phases.
fn bounds(s: &Settings, found: &mut Vec<String>) {
    let mut within = within(found);
    within("redis.shards", s.redis.shards.into(), 1, 64);
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
    within("p1_entry.in_flight_max", s.p1_entry.in_flight_max as u64, 1, 1_000_000);
    within("p1_entry.backlog_max", s.p1_entry.backlog_max, 1, 1 << 40);
    within("p1_entry.lag_max_ms", s.p1_entry.lag_max_ms, 0, 24 * HOUR_MS);
    within("p1_entry.token_ttl_s", s.p1_entry.token_ttl_s, 1, 30 * 86_400);
    within("p1_entry.quantity_max", s.p1_entry.quantity_max.into(), 1, 1_000_000);
    within("p1_entry.room_release_per_s", s.p1_entry.room_release_per_s.into(), 1, 1_000_000);
    within("p1_entry.room_places_max", s.p1_entry.room_places_max, 1, 100_000_000);
    within("p1_entry.cache_ttl_ms", s.p1_entry.cache_ttl_ms, 10, 60_000);
    within("p1_entry.missing_ttl_ms", s.p1_entry.missing_ttl_ms, 10, 60_000);
    within("p1_entry.cache_sales_max", s.p1_entry.cache_sales_max, 1, 1 << 32);
    // 4 arguments a request; Lua's unpack holds just under 8000 values.
    within("p2_reserve.group_max", s.p2_reserve.group_max as u64, 1, 1000);
    within("p2_reserve.queue_max", s.p2_reserve.queue_max as u64, 1, 1 << 24);
    within("p2_reserve.deadline_ms", s.p2_reserve.deadline_ms, 10, 60_000);
    within("p3_relay.attempts_max", s.p3_relay.attempts_max.into(), 1, 1_000_000);
    within("p3_relay.backoff_ms", s.p3_relay.backoff_ms, 1, HOUR_MS);
    within("p3_relay.backoff_max_ms", s.p3_relay.backoff_max_ms, 1, HOUR_MS);
    within("p3_relay.claim_idle_ms", s.p3_relay.claim_idle_ms, 10, 24 * HOUR_MS);
    within("p3_relay.confirm_timeout_ms", s.p3_relay.confirm_timeout_ms, 10, HOUR_MS);
    within("p3_relay.window_max", s.p3_relay.window_max as u64, 1, 10_000);
    within("p3_relay.probe_max", s.p3_relay.probe_max as u64, 1, 10_000);
    within("p3_relay.idle_ms", s.p3_relay.idle_ms, 1, 10_000);
    within("p4_persist.attempts_max", s.p4_persist.attempts_max.into(), 1, 1_000_000);
    within("p4_persist.retry_delay_ms", s.p4_persist.retry_delay_ms, 10, HOUR_MS);
    within("p4_persist.retry_delay_max_ms", s.p4_persist.retry_delay_max_ms, 1, 24 * HOUR_MS);
    within("p4_persist.writers_count", s.p4_persist.writers_count.into(), 1, 16);
    within("p4_persist.group_max", s.p4_persist.group_max as u64, 1, 5_000);
    within("p4_persist.breaker_failures", s.p4_persist.breaker_failures.into(), 1, 1_000_000);
    within("p4_persist.breaker_open_ms", s.p4_persist.breaker_open_ms, 1, HOUR_MS);
    within("p5_reconcile.interval_ms", s.p5_reconcile.interval_ms, 10, 24 * HOUR_MS);
    within("p5_reconcile.window_ms", s.p5_reconcile.window_ms, 10, 24 * HOUR_MS);
    within("p5_reconcile.quiet_ms", s.p5_reconcile.quiet_ms, 10, HOUR_MS);
    within("p5_reconcile.ledger_retention_s", s.p5_reconcile.ledger_retention_s, 1, 3650 * 86_400);
    within("p5_reconcile.warm_ahead_ms", s.p5_reconcile.warm_ahead_ms, 0, 24 * HOUR_MS);
    within("p5_reconcile.findings_max", s.p5_reconcile.findings_max as u64, 1, 100_000);
}

fn relations(s: &Settings, found: &mut Vec<String>) {
    let mut at_most = |low: (&str, u64), high: (&str, u64), why: &str| {
        if low.1 > high.1 {
            found.push(format!("{}: {} is above {} ({}); {why}", low.0, low.1, high.0, high.1));
        }
    };
    at_most(
        ("p3_relay.confirm_timeout_ms", s.p3_relay.confirm_timeout_ms + 1),
        ("p3_relay.claim_idle_ms", s.p3_relay.claim_idle_ms),
        "another relay would take over entries that still wait for their confirm",
    );
    at_most(
        ("p3_relay.backoff_ms", s.p3_relay.backoff_ms),
        ("p3_relay.backoff_max_ms", s.p3_relay.backoff_max_ms),
        "the first pause cannot exceed the longest",
    );
    at_most(
        ("p4_persist.retry_delay_ms", s.p4_persist.retry_delay_ms),
        ("p4_persist.retry_delay_max_ms", s.p4_persist.retry_delay_max_ms),
        "the first delay cannot exceed the longest",
    );
    at_most(
        ("p4_persist.retry_delay_max_ms", s.p4_persist.retry_delay_max_ms),
        ("p4_persist.retry_delay_ms × 32768", s.p4_persist.retry_delay_ms.saturating_mul(1 << 15)),
        "each doubling of the delay is a queue, and there are at most 16",
    );
    at_most(
        ("p4_persist.group_max", s.p4_persist.group_max as u64),
        ("p4_persist.prefetch", s.p4_persist.prefetch.into()),
        "a group cannot be larger than what may be held unacknowledged",
    );
    at_most(
        ("p3_relay.claim_idle_ms", s.p3_relay.claim_idle_ms),
        ("p5_reconcile.window_ms", s.p5_reconcile.window_ms),
        "the audit would call requests lost that a relay is about to take over",
    );
    at_most(
        ("p1_entry.token_ttl_s", s.p1_entry.token_ttl_s),
        ("p5_reconcile.ledger_retention_s", s.p5_reconcile.ledger_retention_s.saturating_sub(1)),
        "a replay must always find its ledger record",
    );
    if s.redis.wait_replicas > 0 {
        at_most(
            ("redis.wait_timeout_ms", s.redis.wait_timeout_ms + 1),
            ("redis.command_timeout_ms", s.redis.command_timeout_ms),
            "the wait for replicas is part of the call",
        );
    }
    at_most(
        ("redis.command_timeout_ms", s.redis.command_timeout_ms),
        ("p2_reserve.deadline_ms", s.p2_reserve.deadline_ms),
        "a request must outlive its script call, or every slow answer is unknown",
    );
}
