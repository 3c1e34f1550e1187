//! Asking the three servers, one check a line.

use super::advice::{self, at_least};
use crate::config::QueueType;
use crate::roles::Servers;
use crate::runtime::now_ms;
use crate::store::mysql::{Db, checks, migrate};
use crate::store::rabbit::{RabbitConfig, RabbitError, Topology, broker_info, declare, queue_depths};
use crate::store::redis::{RedisStore, Weight};
use serde::Serialize;

/// Clocks may differ by this much, milliseconds. No guarantee depends on it; windows and starts of sales are judged by them.
const CLOCKS_MS: i64 = 1_000;

/// Name of the check of the broker's topology.
pub(super) const DECLARED: &str = "queues and exchanges";
/// Name of the check of the schema.
pub(super) const MIGRATED: &str = "migrations";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Verdict {
    Fine,
    /// Worth knowing; no guarantee of the default installation breaks by itself.
    Warning,
    /// A guarantee breaks.
    Wrong,
    /// The server could not be asked.
    Away,
}

impl Verdict {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fine => "ok",
            Self::Warning => "WARNING",
            Self::Wrong => "WRONG",
            Self::Away => "AWAY",
        }
    }
}

/// One check.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Line {
    pub server: &'static str,
    pub name: String,
    pub value: String,
    pub expected: String,
    pub verdict: Verdict,
    pub why: String,
    pub change: String,
}

impl Line {
    pub(super) fn new(
        server: &'static str,
        name: impl Into<String>,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        let (name, value, expected) = (name.into(), value.into(), expected.into());
        Self { server, name, value, expected, verdict: Verdict::Fine, why: String::new(), change: String::new() }
    }

    pub(super) fn judged(mut self, ok: bool, otherwise: Verdict, why: &str, change: &str) -> Self {
        self.verdict = if ok { Verdict::Fine } else { otherwise };
        why.clone_into(&mut self.why);
        change.clone_into(&mut self.change);
        self
    }

    pub(super) fn away(server: &'static str, error: &impl ToString) -> Self {
        let why = error.to_string();
        Self::new(server, "answers", "no", "yes").judged(false, Verdict::Away, &why, "start it, or correct its url")
    }

    pub fn headline(&self) -> String {
        format!("{} is {}, expected {}", self.name, self.value, self.expected)
    }
}

pub(super) async fn redis(redis: &RedisStore, connected: bool, shards: u16) -> Vec<Line> {
    const SERVER: &str = "redis";
    let version = match redis.health.version().await {
        Ok(version) => version,
        Err(error) if !connected => return vec![Line::away(SERVER, &error)],
        Err(error) => return vec![Line::away(SERVER, &format!("{error}; may this user call INFO?"))],
    };
    let ok = at_least(&version, [7, 0]);
    let mut lines = vec![Line::new(SERVER, "version", version, "7.0 or newer").judged(
        ok,
        Verdict::Wrong,
        "older servers do not know the scripts' flags and auto-claim leaves deleted entries pending",
        "upgrade Redis",
    )];
    match redis.health.settings().await {
        Ok(settings) => lines.extend(settings.into_iter().map(|s| {
            let otherwise = match s.weight {
                Weight::Must | Weight::Promise => Verdict::Wrong,
                Weight::Advice => Verdict::Warning,
            };
            Line::new(SERVER, s.name, s.value, s.expected).judged(s.ok, otherwise, s.why, advice::redis(s.name))
        })),
        Err(error) => lines.push(Line::new(SERVER, "settings", "unreadable", "CONFIG GET permitted").judged(
            false,
            if redis.health.is_strict() { Verdict::Wrong } else { Verdict::Warning },
            &format!("eviction or a lazy fsync would lose accepted requests, and it cannot be checked: {error}"),
            "permit CONFIG GET to this user, or make sure of noeviction, appendonly yes and appendfsync always",
        )),
    }
    lines.extend(places(redis));
    for shard in 0..shards {
        let (Ok(outbox), Ok(parked)) = (redis.outbox.depth(shard).await, redis.relay_dlq.count(shard).await) else {
            continue;
        };
        let value = format!("{} entries, {} of them read", outbox.0, outbox.1);
        lines.push(Line::new(SERVER, format!("outbox of shard {shard}"), value, "for information"));
        lines.push(dlq_line(SERVER, format!("relay DLQ of shard {shard}"), parked));
    }
    lines
}

fn dlq_line(server: &'static str, name: String, parked: u64) -> Line {
    Line::new(server, name, parked.to_string(), "0").judged(
        parked == 0,
        Verdict::Warning,
        "these accepted requests could not go on by themselves",
        "seckill dlq list, then seckill dlq replay or give-up",
    )
}

pub(super) async fn rabbit(config: &RabbitConfig) -> Vec<Line> {
    const SERVER: &str = "rabbitmq";
    let info = match broker_info(config).await {
        Ok(info) => info,
        Err(error) => return vec![Line::away(SERVER, &error)],
    };
    let ok = at_least(&info.version, [3, 10]);
    let mut lines = vec![
        Line::new(SERVER, "version", format!("{} {}", info.product, info.version), "3.10 or newer").judged(
            ok,
            Verdict::Wrong,
            "older quorum queues do not know message TTL and at-least-once dead-lettering",
            "upgrade RabbitMQ",
        ),
        Line::new(SERVER, "rabbitmq.queue_type", format!("{:?}", config.queue_type).to_lowercase(), "quorum").judged(
            config.queue_type == QueueType::Quorum,
            Verdict::Warning,
            "classic queues may lose a message while they dead-letter it; P5 then lands it from the ledger",
            "rabbitmq.queue_type = \"quorum\"",
        ),
    ];
    lines.extend(topology(config).await);
    lines
}

/// Queues and exchanges: there, as this build makes them, consumed.
async fn topology(config: &RabbitConfig) -> Vec<Line> {
    const SERVER: &str = "rabbitmq";
    let depths = match queue_depths(config).await {
        Ok(depths) => depths,
        Err(error @ RabbitError::NoQueue { .. }) => {
            let line = Line::new(SERVER, DECLARED, error.to_string(), "all there");
            return vec![if config.declare {
                line.judged(
                    false,
                    Verdict::Warning,
                    "a relay or a consumer makes them when it starts",
                    "start the roles",
                )
            } else {
                line.judged(
                    false,
                    Verdict::Wrong,
                    "with rabbitmq.declare = false nobody else makes them",
                    "seckill topology",
                )
            }];
        }
        Err(error) => return vec![Line::away(SERVER, &error)],
    };
    // Everything is there, so declaring creates nothing: it only compares the arguments.
    let same = declare(config).await;
    let fine = if config.declare { "as this build makes them" } else { "all there; not compared (rabbitmq.declare)" };
    let value = same.as_ref().map_or_else(ToString::to_string, |()| fine.to_owned());
    let change = match &same {
        Err(error) if error.is_denied() => "give the account the right, or set rabbitmq.declare = false",
        Ok(()) | Err(_) => {
            "let the queue drain, delete it and let a role make it again, or choose another rabbitmq.prefix"
        }
    };
    let mut lines = vec![Line::new(SERVER, DECLARED, value, "as this build makes them").judged(
        same.is_ok(),
        Verdict::Wrong,
        "with other arguments messages could be dropped, or the roles cannot connect",
        change,
    )];
    let names = Topology::new(config);
    let orders: Vec<String> = (0..config.queues).map(|index| names.orders_queue(index)).collect();
    for depth in depths {
        if depth.queue == names.dlq() {
            lines.push(dlq_line(SERVER, depth.queue, depth.ready));
            continue;
        }
        let value = format!("{} ready, {} consumers", depth.ready, depth.consumers);
        if !orders.contains(&depth.queue) {
            lines.push(Line::new(SERVER, depth.queue, value, "for information"));
            continue;
        }
        lines.push(Line::new(SERVER, depth.queue, value, "a consumer").judged(
            depth.consumers > 0,
            Verdict::Warning,
            "nobody takes messages from this queue: orders wait",
            "start a consumer: seckill --role consumer",
        ));
    }
    lines
}

pub(super) async fn mysql(db: &Db) -> Vec<Line> {
    const SERVER: &str = "mysql";
    let identity = match checks::identity(db).await {
        Ok(identity) => identity,
        Err(error) => return vec![Line::away(SERVER, &error)],
    };
    let least = if identity.version.contains("MariaDB") { [10, 6] } else { [8, 0] };
    let mut lines =
        vec![Line::new(SERVER, "version", identity.version.clone(), "MySQL 8.0, MariaDB 10.6 or newer").judged(
            at_least(&identity.version, least),
            Verdict::Wrong,
            "older servers ignore CHECK constraints or lack window functions",
            "upgrade the database",
        )];
    let mut has_tables = true;
    match migrate::pending(db).await {
        Ok(pending) => {
            let value =
                if pending.is_empty() { "all applied".to_owned() } else { format!("missing {}", pending.join(", ")) };
            lines.push(Line::new(SERVER, MIGRATED, value, "all applied").judged(
                pending.is_empty(),
                Verdict::Wrong,
                "this build's statements need this schema",
                "seckill migrate",
            ));
            has_tables = pending.is_empty();
        }
        Err(error) => lines.push(Line::away(SERVER, &error)),
    }
    match checks::checks(db).await {
        // Without the tables the checks on them would only repeat it.
        Ok(checks) => lines.extend(
            checks.into_iter().filter(|check| has_tables || !checks::OF_TABLES.contains(&check.name)).map(|check| {
                let advice::Advice { why, change, required } = advice::mysql(check.name);
                let otherwise = if required { Verdict::Wrong } else { Verdict::Warning };
                Line::new(SERVER, check.name, check.value, check.expected).judged(check.ok, otherwise, why, change)
            }),
        ),
        Err(error) => lines.push(Line::away(SERVER, &error)),
    }
    lines
}

/// Of several servers, which shards each has.
fn places(redis: &RedisStore) -> Vec<Line> {
    let servers = redis.servers();
    let several = servers.len() > 1;
    let line = |(server, shards): (String, Vec<u16>)| {
        let value = format!("{server}: {}", shards.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
        Line::new("redis", "shards", value, "one or more on each server").judged(
            !shards.is_empty(),
            Verdict::Warning,
            "a server without shards carries no part of the sales",
            "raise redis.shards before the next sale, or move slots",
        )
    };
    servers.into_iter().filter(|_| several).map(line).collect()
}

/// Each server's clock against this machine's, half of the round trip taken off.
pub(super) async fn clocks(servers: &Servers) -> Vec<Line> {
    let mut lines = Vec::new();
    let begin = now_ms();
    let redis = servers.redis.health.clock_ms(0).await.ok();
    let middle = now_ms();
    let mysql = checks::identity(&servers.db).await.ok().map(|identity| identity.clock_ms);
    let end = now_ms();
    for (server, clock, here) in [("redis", redis, (begin + middle) / 2), ("mysql", mysql, (middle + end) / 2)] {
        let Some(clock) = clock else { continue };
        let ahead_ms = clock - here;
        lines.push(Line::new(server, "clock", format!("{ahead_ms} ms ahead of this machine"), "within 1 s").judged(
            ahead_ms.abs() <= CLOCKS_MS,
            Verdict::Warning,
            "starts, ends, token expiry and audit windows are judged by different clocks; nothing is lost by it",
            "synchronise the clocks (NTP)",
        ));
    }
    lines
}
