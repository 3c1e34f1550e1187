//! Servers that a test may kill, freeze and fill: a few sets, each of them one test's at a time.

use super::programs::scratch;
use crate::support::world::{init_telemetry, pause};
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl, SimpleAsyncConnection};
use seckill::dev::{PrivateServers, ServerKind};
use std::ops::{Deref, DerefMut};
use tokio::sync::{Mutex, MutexGuard, OnceCell, Semaphore, SemaphorePermit};

const SETS: usize = 3;
static BREAKABLE: [OnceCell<Mutex<PrivateServers>>; SETS] = [const { OnceCell::const_new() }; SETS];
static FREE: Semaphore = Semaphore::const_new(SETS);

/// A set of servers, until it is dropped.
pub struct Breakable {
    servers: MutexGuard<'static, PrivateServers>,
    // Given back after the set: fields are dropped in their order.
    _turn: SemaphorePermit<'static>,
}

impl Deref for Breakable {
    type Target = PrivateServers;

    fn deref(&self) -> &PrivateServers {
        &self.servers
    }
}

impl DerefMut for Breakable {
    fn deref_mut(&mut self) -> &mut PrivateServers {
        &mut self.servers
    }
}

async fn start(number: usize) -> Mutex<PrivateServers> {
    init_telemetry();
    let dir = scratch(&format!("breakable{number}"));
    std::fs::remove_dir_all(&dir).ok();
    Mutex::new(PrivateServers::start(&dir, &|_progress| {}).await.expect("private servers"))
}

/// A set without a user: one that runs, else a new one.
async fn free_set() -> Breakable {
    let turn = FREE.acquire().await.expect("never closed");
    loop {
        if let Some(servers) = BREAKABLE.iter().filter_map(OnceCell::get).find_map(|set| set.try_lock().ok()) {
            return Breakable { servers, _turn: turn };
        }
        match BREAKABLE.iter().enumerate().find(|(_, set)| set.get().is_none()) {
            Some((number, set)) => drop(set.get_or_init(|| start(number)).await),
            None => pause().await,
        }
    }
}

/// Servers for a test that breaks them. Whole again when they are handed out.
pub async fn breakable_servers() -> Breakable {
    let mut servers = free_set().await;
    for kind in ServerKind::ALL {
        servers.server(kind).expect("ours").resume().ok();
    }
    for (kind, restarted) in servers.check_and_restart_dead().await {
        restarted.unwrap_or_else(|error| panic!("{kind}: {error}"));
    }
    // A test that failed under a memory alarm, or with a consumer time-out of a second, has left it on. Virtual hosts stay: a
    // broker that was killed takes seconds to delete their queues, at the cost of the next test.
    servers.ask_broker("vm_memory_monitor:set_vm_memory_high_watermark(0.4).\n").await.expect("the broker answers");
    consumer_timeout(&servers, CONSUMER_TIMEOUT_MS).await;
    forget_databases(&servers.urls().mysql_url).await;
    servers
}

/// The broker's own `consumer_timeout`.
const CONSUMER_TIMEOUT_MS: u32 = 1_800_000;

/// From when on the broker takes messages back from a consumer that neither settles nor returns them, and closes its channel: of
/// channels that are opened from now on. It checks as often.
pub async fn consumer_timeout(servers: &PrivateServers, ms: u32) {
    let tick_ms = ms.min(60_000);
    let program = format!(
        "ok = application:set_env(rabbit, consumer_timeout, {ms}), application:set_env(rabbit, channel_tick_interval, {tick_ms}).\n"
    );
    let answer = servers.ask_broker(&program).await.expect("the broker answers");
    assert!(answer.contains("{ok, ok}"), "{answer}");
}

#[derive(QueryableByName)]
struct Database {
    #[diesel(sql_type = Text)]
    name: String,
}

/// Drops what earlier tests have made.
async fn forget_databases(url: &str) {
    let mut connection = AsyncMysqlConnection::establish(url).await.expect("the database");
    let all = "SELECT schema_name AS name FROM information_schema.schemata \
               WHERE schema_name NOT IN ('seckill', 'mysql', 'sys', 'information_schema', 'performance_schema')";
    let all: Vec<Database> = diesel::sql_query(all).load(&mut connection).await.expect("databases");
    for Database { name } in all {
        connection.batch_execute(&format!("DROP DATABASE `{name}`")).await.expect("dropped");
    }
}
