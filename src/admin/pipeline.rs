//! The whole pipeline in one picture: what lies at each hop, who is there to move it, and what this process says of itself.
//!
//! Lengths and sums are read from the servers, so they are true for all processes. States, breakers and the lag are this
//! process' own. The three servers are asked at once, each within [`PART`]; one that is away costs its own part only.

use super::calls::ViewCall;
use super::flows::{SaleFlow, flows};
use super::json_api::{AdminAnswer, ReadProblems, answer};
use super::state::Admin;
use crate::http::problem::{Kind, Problem};
use crate::p5_reconcile::rows::totals::Registered;
use crate::runtime::now_ms;
use crate::store::mysql::DbError;
use crate::store::mysql::leader::Holder;
use crate::store::mysql::leader_election::leader;
use crate::store::rabbit::{QueueDepth, queue_depths};
use crate::store::redis::{HeldLease, RedisFault};
use crate::telemetry;
use actix_web::web;
use futures::future::join_all;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A server may take this long; the picture is then drawn without it.
const PART: Duration = Duration::from_secs(2);
/// Leases shown; those that ended longer ago than [`LEASE_SHOWN_MS`] are left out.
const LEASES_MAX: usize = 64;
/// A lease is shown until this long after its fence.
const LEASE_SHOWN_MS: i64 = 30_000;

/// Everything the picture shows.
#[derive(Serialize, utoipa::ToSchema)]
pub(super) struct PipelineSnapshot {
    /// When, Unix milliseconds.
    at_ms: i64,
    /// How long it took to ask, milliseconds.
    took_ms: u64,
    /// Redis, RabbitMQ and the database.
    #[schema(value_type = Vec<ServerState>)]
    servers: [ServerState; 3],
    shards: Vec<ShardBacklog>,
    /// Absent when the broker does not answer.
    queues: Option<Vec<Queue>>,
    /// The newest sales that are warmed or paused.
    sales: Vec<SaleFlow>,
    register: Option<RegisterCount>,
    leader: Option<Holder>,
    leases: Vec<HeldLease>,
    process: Process,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ServerState {
    name: &'static str,
    ok: bool,
    problem: Option<String>,
}

impl ServerState {
    fn of<T>(name: &'static str, outcome: &Result<T, String>) -> Self {
        Self { name, ok: outcome.is_ok(), problem: outcome.as_ref().err().cloned() }
    }
}

#[derive(Serialize, utoipa::ToSchema)]
struct ShardBacklog {
    shard: u16,
    outbox: Option<u64>,
    pending: Option<u64>,
    relay_dlq: Option<u64>,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Queue {
    queue: String,
    /// `orders`, `retry` or `dlq`.
    kind: &'static str,
    ready: u64,
    consumers: u32,
}

#[derive(Serialize, Default, utoipa::ToSchema)]
struct RegisterCount {
    open: i64,
    failed_final: i64,
    resolved: i64,
}

#[derive(Serialize, utoipa::ToSchema)]
struct Process {
    roles: Vec<&'static str>,
    /// Transitions since it started, by state code.
    states: BTreeMap<&'static str, f64>,
    /// Absent: this process does not run that role.
    relay_breaker_open: Option<bool>,
    persist_breaker_open: Option<bool>,
    entry_open: Option<bool>,
    entry_lag_s: Option<f64>,
}

/// Show what lies at each hop, at most a second old.
#[utoipa::path(
    get, path = "/admin/v1/pipeline", operation_id = "show_pipeline", tag = "process",
    responses((status = 200, description = "The pipeline", body = PipelineSnapshot), ReadProblems)
)]
pub(super) async fn pipeline(_call: ViewCall, admin: web::Data<Admin>) -> AdminAnswer {
    // Boxed, as are its parts: a thread of the server has a small stack, and these futures lie in one another.
    let taking = Box::pin(async {
        serde_json::to_value(Box::pin(take(&admin)).await).map_err(|_| Problem::from(Kind::Internal))
    });
    answer(&*admin.snapshot.try_get(taking).await?)
}

async fn part<T, E: Display>(asking: impl Future<Output = Result<T, E>>) -> Result<T, String> {
    match tokio::time::timeout(PART, Box::pin(asking)).await {
        Ok(answer) => answer.map_err(|error| error.to_string()),
        Err(_elapsed) => Err(format!("no answer within {} s", PART.as_secs())),
    }
}

async fn take(admin: &Admin) -> PipelineSnapshot {
    let (at_ms, begun) = (now_ms(), Instant::now());
    let (redis, queues, database) = tokio::join!(part(shards(admin)), Box::pin(queues(admin)), part(database(admin)));
    // Some shards only: the server of the others is away. None: Redis is.
    let redis = redis.and_then(|shards| match shards.iter().find_map(|(_, fault)| fault.clone()) {
        Some(fault) if shards.iter().all(|(_, fault)| fault.is_some()) => Err(fault),
        Some(_) | None => Ok(shards),
    });
    let (known, counted, leader) = database.as_ref().map_or((&[][..], &[][..], None), |found| {
        (found.sales.as_slice(), found.registered.as_slice(), found.leader.clone())
    });
    let flows = part(async { Ok::<_, RedisFault>(flows(admin, known, counted).await) }).await.unwrap_or_default();
    let leases = part(leases(admin, at_ms)).await.unwrap_or_default();
    PipelineSnapshot {
        at_ms,
        took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        servers: [
            ServerState::of("redis", &redis),
            ServerState::of("rabbitmq", &queues.as_ref().as_ref().map(|_| ()).map_err(Clone::clone)),
            ServerState::of("mysql", &database),
        ],
        shards: redis.unwrap_or_default().into_iter().map(|(shard, _)| shard).collect(),
        queues: queues.as_ref().as_ref().ok().map(|depths| depths.iter().map(Queue::of).collect()),
        sales: flows,
        register: database.as_ref().ok().map(|found| RegisterCount::of(&found.registered)),
        leader,
        leases,
        process: Process::of(admin),
    }
}

/// Every shard, with what is wrong with it.
async fn shards(admin: &Admin) -> Result<Vec<(ShardBacklog, Option<String>)>, RedisFault> {
    let redis = &admin.servers.redis;
    let one = |shard| async move {
        let (depth, parked) = tokio::join!(Box::pin(redis.outbox.depth(shard)), Box::pin(redis.relay_dlq.count(shard)));
        let fault = depth.as_ref().err().or(parked.as_ref().err()).map(ToString::to_string);
        let (outbox, pending) = depth.map_or((None, None), |(length, pending)| (Some(length), Some(pending)));
        (ShardBacklog { shard, outbox, pending, relay_dlq: parked.ok() }, fault)
    };
    Ok(join_all((0..admin.context.shards).map(one)).await)
}

/// Reading the broker's queues takes a connection, so they are read less often.
async fn queues(admin: &Admin) -> Arc<Result<Vec<QueueDepth>, String>> {
    admin.queues.get(part(queue_depths(&admin.servers.rabbit))).await
}

struct Database {
    sales: Vec<crate::domain::sale::Sale>,
    registered: Vec<Registered>,
    leader: Option<Holder>,
}

async fn database(admin: &Admin) -> Result<Database, DbError> {
    let servers = &admin.servers;
    let sales = servers.rows.sales.list().await?;
    Ok(Database { sales, registered: servers.rows.books.registered().await?, leader: leader(&servers.db).await? })
}

async fn leases(admin: &Admin, now_ms: i64) -> Result<Vec<HeldLease>, RedisFault> {
    let mut all = Vec::new();
    for shard in 0..admin.context.shards {
        let held = admin.servers.redis.leases.all(shard).await?;
        all.extend(held.into_iter().filter(|lease| lease.fence_ms + LEASE_SHOWN_MS > now_ms));
    }
    all.sort_by_key(|lease| std::cmp::Reverse(lease.fence_ms));
    all.truncate(LEASES_MAX);
    Ok(all)
}

impl Queue {
    fn of(depth: &QueueDepth) -> Self {
        let parts: Vec<&str> = depth.queue.rsplitn(3, '.').collect();
        let kind = match parts.as_slice() {
            ["dlq", ..] => "dlq",
            [_, "retry", ..] => "retry",
            _ => "orders",
        };
        Self { queue: depth.queue.clone(), kind, ready: depth.ready, consumers: depth.consumers }
    }
}

impl RegisterCount {
    fn of(registered: &[Registered]) -> Self {
        let count = |status: &str| registered.iter().filter(|row| row.status == status).map(|row| row.count).sum();
        Self { open: count("open"), failed_final: count("failed_final"), resolved: count("resolved") }
    }
}

impl Process {
    fn of(admin: &Admin) -> Self {
        let open = |reading: &telemetry::Reading| reading.get().map(|open| open > 0.0);
        Self {
            roles: admin.roles.iter().map(|role| role.name()).collect(),
            states: telemetry::state_counts().map(|(state, count)| (state.code(), count as f64)).collect(),
            relay_breaker_open: open(&telemetry::RELAY_BREAKER_OPEN),
            persist_breaker_open: open(&telemetry::PERSIST_BREAKER_OPEN),
            entry_open: open(&telemetry::ENTRY_OPEN),
            entry_lag_s: telemetry::ENTRY_LAG_S.get(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_distinguished_by_name() {
        let kind = |name: &str| Queue::of(&QueueDepth { queue: name.to_owned(), ready: 0, consumers: 0 }).kind;
        assert_eq!(
            ["sk.orders.0", "a.b.orders.12", "sk.retry.200", "sk.dlq", "a.dlq"].map(kind),
            ["orders", "orders", "retry", "dlq", "dlq"]
        );
    }
}
