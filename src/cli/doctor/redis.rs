//! The checks of Redis: version, settings, places of the shards, backlog.

use super::advice;
use super::check::{CheckVerdict, DoctorCheck, at_least, dlq_check};
use crate::store::redis::{RedisStore, Weight};

pub(super) async fn check_redis(redis: &RedisStore, connected: bool, shards: u16) -> Vec<DoctorCheck> {
    const SERVER: &str = "redis";
    let version = match redis.health.version().await {
        Ok(version) => version,
        Err(error) if !connected => return vec![DoctorCheck::away(SERVER, &error)],
        Err(error) => return vec![DoctorCheck::away(SERVER, &format!("{error}; may this user call INFO?"))],
    };
    let ok = at_least(&version, [7, 0]);
    let mut found = vec![DoctorCheck::new(SERVER, "version", version, "7.0 or newer").judged(
        ok,
        CheckVerdict::Wrong,
        "older servers do not know the scripts' flags and auto-claim leaves deleted entries pending",
        "upgrade Redis",
    )];
    match redis.health.settings().await {
        Ok(settings) => found.extend(settings.into_iter().map(|s| {
            let otherwise = match s.weight {
                Weight::Must | Weight::Promise => CheckVerdict::Wrong,
                Weight::Advice => CheckVerdict::Warning,
            };
            DoctorCheck::new(SERVER, s.name, s.value, s.expected).judged(s.ok, otherwise, s.why, advice::redis(s.name))
        })),
        Err(error) => found.push(DoctorCheck::new(SERVER, "settings", "unreadable", "CONFIG GET permitted").judged(
            false,
            if redis.health.is_strict() { CheckVerdict::Wrong } else { CheckVerdict::Warning },
            &format!("eviction or a lazy fsync would lose accepted requests, and it cannot be checked: {error}"),
            "permit CONFIG GET to this user, or make sure of noeviction, appendonly yes and appendfsync always",
        )),
    }
    found.extend(replicas(redis).await);
    found.extend(places(redis));
    for shard in 0..shards {
        let (Ok(outbox), Ok(parked)) = (redis.outbox.depth(shard).await, redis.relay_dlq.count(shard).await) else {
            continue;
        };
        let value = format!("{} orders; {} entries are read and not done", outbox.0, outbox.1);
        found.push(DoctorCheck::new(SERVER, format!("outbox of shard {shard}"), value, "for information"));
        found.push(dlq_check(SERVER, format!("relay DLQ of shard {shard}"), parked));
    }
    found
}

/// What each replica keeps: it may be promoted. Of a single server no replica is, unless a name moves.
async fn replicas(redis: &RedisStore) -> Vec<DoctorCheck> {
    let otherwise = if redis.health.promotes() { CheckVerdict::Wrong } else { CheckVerdict::Warning };
    let mut found = Vec::new();
    for replica in redis.health.replicas().await {
        let of = |name: &str| format!("{name} of replica {}", replica.address);
        match replica.settings {
            Ok(settings) => found.extend(settings.into_iter().map(|s| {
                let why = format!("after a fail-over this server sells: {}", s.why);
                DoctorCheck::new("redis", of(s.name), s.value, s.expected).judged(
                    s.ok,
                    otherwise,
                    &why,
                    advice::redis(s.name),
                )
            })),
            Err(error) => found.push(DoctorCheck::new("redis", of("settings"), "unreadable", "readable").judged(
                false,
                CheckVerdict::Warning,
                &format!("whether it keeps what it has after a fail-over cannot be checked from here: {error}"),
                "run seckill doctor from a host that reaches it, or look there: CONFIG GET append*",
            )),
        }
    }
    found
}

/// Of several servers, which shards each has.
fn places(redis: &RedisStore) -> Vec<DoctorCheck> {
    let servers = redis.servers();
    let several = servers.len() > 1;
    let check = |(server, shards): (String, Vec<u16>)| {
        let value = format!("{server}: {}", shards.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
        DoctorCheck::new("redis", "shards", value, "one or more on each server").judged(
            !shards.is_empty(),
            CheckVerdict::Warning,
            "a server without shards carries no part of the sales",
            "raise redis.shards before the next sale, or move slots",
        )
    };
    servers.into_iter().filter(|_| several).map(check).collect()
}
