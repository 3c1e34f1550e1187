//! The checks of Redis: version, settings, places of the shards, backlog.

use super::advice;
use super::check::{CheckVerdict, DoctorCheck, at_least, dlq_check};
use crate::store::redis::{RedisStore, Weight, WriteStops};

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
    found.extend(writes(redis).await);
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

/// Whether purchases can be written now, and what may end that in mid-sale.
async fn writes(redis: &RedisStore) -> Vec<DoctorCheck> {
    let refused = match redis.health.refused_writes().await {
        Ok(refused) => refused,
        Err(error) => return vec![DoctorCheck::away("redis", &error)],
    };
    let value = if refused.is_empty() { "yes".to_owned() } else { refused.join("; ") };
    let mut found = vec![DoctorCheck::new("redis", "takes writes", value, "yes").judged(
        refused.is_empty(),
        CheckVerdict::Wrong,
        "each purchase writes: all are answered 503 while it is so",
        "NOREPLICAS: start the replicas or lower min-replicas-to-write; MISCONF: mend the disk, then BGSAVE; OOM: raise maxmemory; \
         READONLY: point redis.url at the primary",
    )];
    // Where they cannot be read, the settings' own line says so.
    for stops in redis.health.write_stops().await.unwrap_or_default() {
        found.extend(write_stops(&stops, redis.health.wait_replicas()));
    }
    found
}

/// Nothing of a server that nothing but a full memory or disk stops.
fn write_stops(stops: &WriteStops, wait_replicas: u16) -> Vec<DoctorCheck> {
    let mut found = Vec::new();
    if let Some(times) = &stops.snapshots {
        let last = if stops.is_saved { "the last one was made" } else { "the last one FAILED" };
        let value = format!("save {times}, {last}");
        found.push(DoctorCheck::new("redis", format!("snapshots of {}", stops.address), value, "none").judged(
            false,
            CheckVerdict::Warning,
            "a snapshot that fails (a full disk, no memory for the fork) stops every purchase: stop-writes-on-bgsave-error is yes, \
             and the append-only file is what counts",
            "CONFIG SET save \"\", and the same in redis.conf; or stop-writes-on-bgsave-error no",
        ));
    }
    if stops.replicas_min > 0 && wait_replicas == 0 {
        let name = format!("min-replicas-to-write of {}", stops.address);
        found.push(
            DoctorCheck::new("redis", name, stops.replicas_min.to_string(), "0, as redis.wait_replicas is").judged(
                false,
                CheckVerdict::Warning,
                "the loss of a replica stops every purchase, and accepts wait for none: a price without what it buys",
                "CONFIG SET min-replicas-to-write 0, or set redis.wait_replicas in all processes",
            ),
        );
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
                "run seckill doctor from a host that reaches it, or check there: CONFIG GET append*",
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
