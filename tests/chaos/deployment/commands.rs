//! Commands to a deployment past the proxies: subcommands of the binary, and the broker's own language.

use super::Deployment;
use crate::clients::SaleSpec;
use crate::clients::payer::PRICE;
use crate::files::seckill;
use crate::raw_commands::try_redis;
use crate::time::time_passes;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use seckill::dev::rabbitmq::evaluate;
use seckill::faults::Mechanism;
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::process::Command;
use tokio::time::timeout;

/// Between two audits: each is a process of its own.
const AUDIT_EVERY_MS: u64 = 300;
/// One call of the binary.
const CALL: Duration = Duration::from_secs(60);

/// Exit code, stdout and stderr of a command; nothing when it takes too long.
async fn ended(mut command: Command) -> Option<(Option<i32>, String, String)> {
    let output = timeout(CALL, command.kill_on_drop(true).output()).await.ok()?.expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    Some((output.status.code(), text(output.stdout), text(output.stderr)))
}

impl Deployment {
    /// Runs an Erlang expression in the broker; what it says, or why it could not.
    pub async fn broker(&self, program: &str) -> Result<String, String> {
        let dir = self.dir.join("rabbitmq");
        let program = format!("{program}.\n");
        evaluate(&dir, self.rabbit_ports, &program).await.map_err(|error| error.to_string())
    }

    /// Runs a subcommand of the binary on the servers directly: exit code, stdout, stderr.
    pub async fn call(&self, args: &[&str]) -> (Option<i32>, String, String) {
        self.call_without(None, args).await
    }

    /// The same; nothing when it takes too long.
    pub async fn try_call(&self, args: &[&str]) -> Option<(Option<i32>, String, String)> {
        ended(self.command(None, args)).await
    }

    /// The same by a process that leaves a mechanism out.
    pub async fn call_without(&self, off: Option<Mechanism>, args: &[&str]) -> (Option<i32>, String, String) {
        ended(self.command(off, args)).await.unwrap_or_else(|| panic!("{args:?} takes too long"))
    }

    fn command(&self, off: Option<Mechanism>, args: &[&str]) -> Command {
        let mut command = seckill(&self.set.iter().flat_map(|set| ["--set", set]).collect::<Vec<_>>());
        // No local stack of the folder that the tests run in.
        command.arg("--data-dir").arg(self.dir.join("none")).args(args);
        command.env("SECKILL_REDIS_URL", &self.urls.redis).env("SECKILL_AMQP_URL", &self.urls.amqp);
        command.env("SECKILL_MYSQL_URL", &self.urls.mysql);
        if let Some(traces) = self.traces() {
            command.env("SECKILL_TRACE", traces);
        }
        if let Some(off) = off {
            command.env("FAILPOINTS", format!("{}=return", off.code()));
        }
        command.into()
    }

    /// Like [`Deployment::call`], and it has to succeed.
    pub async fn must_call(&self, args: &[&str]) -> String {
        let (code, stdout, stderr) = self.call(args).await;
        assert_eq!(code, Some(0), "{args:?}: {stdout}{stderr}");
        stdout
    }

    /// Creates a sale that sells now, and warms it.
    pub async fn create_sale(&self, sale: &SaleSpec) {
        let SaleSpec { id, stock, limit, pay_within_s } = sale;
        let (stock, limit) = (stock.to_string(), limit.map(|limit| limit.to_string()));
        let (price, pay_within_s) = (PRICE.to_string(), pay_within_s.map(|seconds| seconds.to_string()));
        let mut args = vec!["sale", "create", "--id", id, "--product", "p", "--title", "t", "--stock", &stock];
        args.extend(["--starts-at", "2020-01-01T00:00:00Z", "--ends-at", "2099-01-01T00:00:00Z", "--warm"]);
        args.extend(["--price-cents", &price]);
        args.extend(limit.iter().flat_map(|limit| ["--limit", limit]));
        args.extend(pay_within_s.iter().flat_map(|seconds| ["--pay-within-s", seconds, "--pay-grace-s", "1"]));
        // One each: who does not pay may buy again.
        if pay_within_s.is_some() && sale.limit == Some(1) {
            args.push("--limit-returns");
        }
        self.must_call(&args).await;
    }

    /// Creates a drop of sales that sell now, and warms it: at most `limit` units of a buyer over all of them. Of those that have to be
    /// paid, who does not pay may buy again.
    pub async fn create_drop(&self, id: &str, limit: u32, sales: &[SaleSpec]) {
        let sale = |spec: &SaleSpec| {
            let mut sale = serde_json::json!({
                "sale_id": spec.id, "product_id": "p", "title": "t", "stock": spec.stock, "limit": spec.limit, "price_cents": PRICE,
                "starts_at": "2020-01-01T00:00:00Z", "ends_at": "2099-01-01T00:00:00Z",
            });
            if let Some(seconds) = spec.pay_within_s {
                sale["pay_within_s"] = seconds.into();
                sale["pay_grace_s"] = 1.into();
                sale["limit_returns"] = true.into();
            }
            sale
        };
        let sales: Vec<_> = sales.iter().map(sale).collect();
        let file = self.dir().join(format!("{id}.json"));
        let drop = serde_json::json!({ "drop_id": id, "title": "t", "limit": limit, "sales": sales });
        std::fs::write(&file, drop.to_string()).expect("the drop's file");
        self.must_call(&["drop", "create", "--warm", "--file", &file.display().to_string()]).await;
    }

    /// Waits until no order is overdue any more, and Redis was given everything; else what stayed.
    pub async fn fulfilled(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let overdue = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM orders WHERE state = 'UNPAID'";
            let open = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM stock_grants WHERE applied_at IS NULL";
            let leaving = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM stock_withdrawals WHERE taken IS NULL";
            let mut left = Vec::new();
            for query in [overdue, open, leaving] {
                left.push(one_line(&self.urls().mysql, query).await);
            }
            if left.iter().all(|left| left.as_deref() == Ok("0")) {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("unpaid orders, open grants, open withdrawals: {left:?}"));
            }
            time_passes(AUDIT_EVERY_MS).await;
        }
    }

    /// Waits until the shop has every event; else how many wait.
    pub async fn delivered(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        let waiting = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM webhook_deliveries WHERE state <> 'DELIVERED'";
        loop {
            let left = one_line(&self.urls().mysql, waiting).await;
            if left.as_deref() == Ok("0") {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("{left:?}"));
            }
            time_passes(AUDIT_EVERY_MS).await;
        }
    }

    /// Waits until every accepted request has its outcome and everything adds up; else what the last audit said.
    pub async fn drained(&self, limit: Duration) -> Result<(), String> {
        let deadline = Instant::now() + limit;
        loop {
            let no_answer = || (None, String::new(), "no answer".to_owned());
            let (code, stdout, stderr) = self.try_call(&["audit", "--now", "--json"]).await.unwrap_or_else(no_answer);
            let audit: Value = serde_json::from_str(&stdout).unwrap_or_default();
            if code == Some(0) && open_units(&audit) == 0 {
                return Ok(());
            }
            if Instant::now() > deadline {
                return Err(format!("exit code {code:?}: {stdout}{stderr}"));
            }
            time_passes(AUDIT_EVERY_MS).await;
        }
    }

    /// Versions of the three servers, for reports.
    pub async fn versions(&self) -> String {
        let redis = try_redis(&self.urls.redis, &["INFO", "server"]).await.unwrap_or_default();
        let redis = redis.as_str().unwrap_or_default().lines().find_map(|line| line.strip_prefix("redis_version:"));
        let rabbit = self.broker("rabbit_misc:version()").await.unwrap_or_default();
        let mysql = version_of_database(&self.urls.mysql).await;
        format!("Redis {}; RabbitMQ {}; {mysql}", redis.unwrap_or("?"), rabbit.trim())
    }
}

/// The database's own word for it; nothing when it does not answer.
async fn version_of_database(url: &str) -> String {
    #[derive(QueryableByName)]
    struct Version {
        #[diesel(sql_type = Text)]
        version: String,
    }
    let Ok(mut connection) = AsyncMysqlConnection::establish(url).await else { return String::new() };
    let question = diesel::sql_query("SELECT CONCAT(VERSION(), ' ', @@version_comment) AS version");
    question.get_result(&mut connection).await.map(|answer: Version| answer.version).unwrap_or_default()
}

/// Accepted units without an outcome, over all sales.
fn open_units(audit: &Value) -> i64 {
    let sales = audit["sales"].as_array().into_iter().flatten();
    let open = |sale: &Value| -> i64 {
        let units = |what: &str| sale["counted"][what].as_i64().unwrap_or(i64::MAX / 8);
        units("in_flight") + units("parked") + units("leaked")
    };
    sales.map(open).sum()
}

#[derive(QueryableByName)]
struct OneLine {
    #[diesel(sql_type = Text)]
    line: String,
}

async fn one_line(mysql: &str, query: &str) -> Result<String, String> {
    let mut connection = AsyncMysqlConnection::establish(mysql).await.map_err(|error| error.to_string())?;
    let row: OneLine = diesel::sql_query(query)
        .get_result(&mut connection)
        .await
        .map_err(|error: diesel::result::Error| error.to_string())?;
    Ok(row.line)
}
