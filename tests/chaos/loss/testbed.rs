//! The deployment of the runs with data loss: one process of each role, short times, and direct access to every server.

use super::crowd::ask;
use super::mysql::Tables;
use super::redis::{RedisFaults, SHARDS};
use crate::deployment::{Deployment, Options, PREFIX};
use crate::dump::{DumpUrls, readable};
use crate::process::Process;
use crate::time::{eventually, pause, time_passes};
use seckill::dev::ServerKind;
use seckill::faults::Mechanism;
use seckill::roles::Role;
use seckill::store::rabbit::{RabbitConfig, RabbitError, queue_depths};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// `admin.token`.
const ADMIN: &str = "test-admin-token-of-a-chaos-run-with-32-bytes";
/// Tries of an operator's call that is not answered in ten seconds: servers may be slow while everything starts.
const TRIES: usize = 6;
/// On top of the quick ones: P5 reads often, takes nothing for lost that a relay may still hold, and forgets early.
const HASTY: [&str; 12] = [
    "p3_relay.confirm_timeout_ms=700",
    "p3_relay.claim_idle_ms=900",
    "p5_reconcile.window_ms=1200",
    "p5_reconcile.interval_ms=150",
    "p5_reconcile.quiet_ms=1000",
    "p5_reconcile.ledger_retention_s=2",
    "p1_entry.token_ttl_s=1",
    // Relays send each order alone, so that a queue is a list of requests.
    "p3_relay.bundle_max=1",
    // A message that cannot land goes to the DLQ soon: while it is tried again no sale is rebuilt.
    "p4_persist.attempts_max=5",
    "p4_persist.breaker_open_ms=200",
    "runtime.drain_ms=1000",
    "admin.token=test-admin-token-of-a-chaos-run-with-32-bytes",
];

/// A deployment with direct access to its servers.
pub struct Testbed {
    /// Servers and processes.
    pub deployment: Deployment,
    /// In the database.
    pub tables: Tables,
    http: reqwest::Client,
    rabbit: RabbitConfig,
}

impl Testbed {
    /// Starts everything. `set`: settings on top.
    pub async fn start(set: &[String]) -> Self {
        let mut options = Options { apis: 1, relays: 1, consumers: 1, reconcilers: 1, ..Options::default() };
        options.set = HASTY.into_iter().map(str::to_owned).collect();
        options.set.push(format!("redis.shards={SHARDS}"));
        options.set.extend(set.iter().cloned());
        let deployment = Deployment::start("chaos-loss", options).await;
        let rabbit = RabbitConfig {
            prefix: PREFIX.to_owned(),
            retry_delay_ms: 200,
            retry_delay_max_ms: 1000,
            declare: false,
            ..RabbitConfig::new(deployment.urls().amqp.clone())
        };
        let tables = Tables::of(&deployment.urls().mysql).await;
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().expect("a client");
        Self { deployment, tables, http, rabbit }
    }

    /// In Redis; a connection of its own, since servers come and go.
    pub async fn redis(&self) -> RedisFaults {
        RedisFaults::on(&self.deployment.urls().redis).await
    }

    /// Where the servers are, for dumps.
    pub fn urls(&self) -> DumpUrls {
        let urls = self.deployment.urls().clone();
        DumpUrls { redis: urls.redis, amqp: urls.amqp, mysql: urls.mysql, prefix: PREFIX.to_owned(), damaged: true }
    }

    fn one(&self, role: Role) -> &Arc<Process> {
        self.deployment.of(role).next().expect("one of each role")
    }

    /// Stops a role where it stands, but in no transaction: locks of a frozen process would block the test's own statements.
    pub async fn freeze(&self, role: Role) {
        let mut runs_ms = 0;
        eventually("a moment without a transaction", async || {
            // Longer each time: on a busy machine it may not even get a turn in a few milliseconds.
            time_passes(runs_ms).await;
            runs_ms += 50;
            self.one(role).signal(libc::SIGSTOP);
            let open = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM information_schema.innodb_trx \
                WHERE trx_rows_locked + trx_rows_modified > 0";
            // Transactions of the others are short: one that stays is the frozen process' own.
            for _ in 0..10 {
                if self.tables.lines(open).await == ["0"] {
                    return true;
                }
                pause().await;
            }
            self.one(role).signal(libc::SIGCONT);
            false
        })
        .await;
    }

    /// Lets a role go on.
    pub fn thaw(&self, role: Role) {
        self.one(role).signal(libc::SIGCONT);
    }

    /// P5 begins a new life without a mechanism.
    pub async fn leave_out(&self, off: Mechanism) {
        let lives = self.one(Role::Reconcile).lives();
        self.one(Role::Reconcile).rearm(&format!("{}=return", off.code()));
        eventually("P5's next life", async || self.one(Role::Reconcile).lives() > lives).await;
        self.deployment.wait_ready().await;
    }

    /// Cuts the consumer off from the broker, or no longer: what it was given goes back into the queue.
    pub fn part_consumer(&self, parted: bool) {
        self.one(Role::Consumer).links.amqp.change(|conditions| conditions.cut = parted);
    }

    /// Cuts every process off from the database, or no longer.
    pub fn part_database(&self, parted: bool) {
        self.part(ServerKind::Mysql, parted);
    }

    /// The same for any server.
    pub fn part(&self, server: ServerKind, parted: bool) {
        for process in &self.deployment.processes {
            let link = match server {
                ServerKind::Redis => &process.links.redis,
                ServerKind::Rabbitmq => &process.links.amqp,
                ServerKind::Mysql => &process.links.mysql,
            };
            link.change(|conditions| conditions.cut = parted);
        }
    }

    /// Whether the broker answers and its queues can be used, or are gone; else why not.
    pub async fn broker_serves(&self) -> Result<(), String> {
        match queue_depths(&self.rabbit).await {
            Ok(_) | Err(RabbitError::NoQueue { .. }) => {}
            Err(error) => return Err(error.to_string()),
        }
        for queue in ["orders.0", "dlq"] {
            let name = format!("{PREFIX}.{queue}");
            let why = readable(&self.deployment.urls().amqp, &name).await;
            why.map_err(|why| format!("{name} cannot be read: {why}"))?;
        }
        Ok(())
    }

    /// Messages that wait in the broker's queues, the DLQ's not counted; `None` while one of them is not there.
    pub async fn queued(&self) -> Option<u64> {
        let depths = queue_depths(&self.rabbit).await.ok()?;
        Some(depths.iter().filter(|depth| !depth.queue.ends_with(".dlq")).map(|depth| depth.ready).sum())
    }

    /// Runs an Erlang expression in the broker.
    pub async fn run_in_broker(&self, program: &str) {
        let answer = self.deployment.broker(program).await.expect("an answer of the broker");
        assert!(answer.starts_with("{ok"), "{program}: {answer}");
    }

    async fn try_admin(&self, path: &str, body: &Value) -> (u16, Value) {
        let port = self.one(Role::Api).recipe.admin_port;
        let url = format!("http://127.0.0.1:{port}/admin/v1/{path}");
        ask(self.http.post(url).bearer_auth(ADMIN).json(body)).await
    }

    /// Asked again while there is no answer: it may have been done, and only then is 409 an answer, too.
    async fn admin(&self, path: &str, body: &Value) -> u16 {
        for before in 0..TRIES {
            let (status, answer) = self.try_admin(path, body).await;
            if status != 0 {
                assert!(status == 200 || before > 0 && status == 409, "{path} {body}: {status} {answer}");
                return status;
            }
        }
        panic!("{path} {body}: no answer");
    }

    /// Creates a sale that sells now.
    pub async fn create(&self, id: &str, stock: i64, limit: Option<u32>) {
        let body = json!({
            "id": id, "product": "p", "title": "t", "stock": stock, "limit": limit, "warm": true,
            "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
        });
        if self.admin("sales", &body).await == 409 {
            // A call without an answer created it, perhaps without its units.
            assert_eq!(self.admin(&format!("sales/{id}/warm"), &json!({})).await, 200, "{id}");
        }
    }

    /// Grants more units.
    pub async fn top_up(&self, sale: &str, units: u32) {
        let top_up = json!({ "units": units, "grant": "more" });
        assert_eq!(self.admin(&format!("sales/{sale}/top-up"), &top_up).await, 200, "{sale}");
    }

    /// Grants more units while the sale may be closed; whether Redis has them at once is the product's business.
    pub async fn try_top_up(&self, sale: &str, units: u32) {
        self.try_admin(&format!("sales/{sale}/top-up"), &json!({ "units": units, "grant": "late" })).await;
    }

    /// Sells the units of final failures again, if it can be done now.
    pub async fn try_reclaim(&self, sale: &str) {
        self.try_admin(&format!("sales/{sale}/reclaim"), &json!({})).await;
    }

    /// Puts an older append-only file in the place of the present one, while the server is dead.
    pub async fn restart_redis_on(&self, copy: &Path) {
        let mut server = self.deployment.server(ServerKind::Redis).lock().await;
        server.kill().await.expect("our own child");
        let data = self.deployment.dir().join("redis/appendonlydir");
        std::fs::remove_dir_all(&data).expect("the server's files");
        copy_folder(copy, &data);
        server.restart().await.expect("redis on an older file");
    }

    /// Copies the append-only file as it is.
    pub fn copy_redis_to(&self, copy: &Path) {
        drop(std::fs::remove_dir_all(copy));
        copy_folder(&self.deployment.dir().join("redis/appendonlydir"), copy);
    }
}

/// Copies a folder with everything in it, sockets aside.
pub(super) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for file in std::fs::read_dir(from).expect("a folder").flatten() {
        let kind = file.file_type().expect("a file");
        if kind.is_dir() {
            copy_folder(&file.path(), &to.join(file.file_name()));
        } else if kind.is_file() {
            std::fs::copy(file.path(), to.join(file.file_name())).expect("copied");
        }
    }
}
