//! What could grow, read again and again: memory and open files of each process, Redis' memory, rows of each table.
//!
//! A server or process that does not answer has no sample for that moment.

use crate::clients::clock::now_ms;
use crate::deployment::Deployment;
use crate::flat::{Point, Series};
use crate::raw_commands::try_redis;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

const EVERY: Duration = Duration::from_secs(5);
const ANSWER_MAX: Duration = Duration::from_secs(3);
const MIB: f64 = 1_048_576.0;
/// Growth that is no news: of a process' memory, of Redis', MiB; of open files, count.
const PROCESS_MIB: f64 = 16.0;
const REDIS_MIB: f64 = 8.0;
const FILES: f64 = 24.0;

/// Series by name.
pub type Measured = BTreeMap<String, Series>;

/// Reads until it is stopped.
pub struct Gauge {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Measured>,
}

impl Gauge {
    /// Starts reading. `rows_floor`: growth of a table that is no news.
    pub fn start(deployment: &Arc<Deployment>, rows_floor: f64) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let deployment = deployment.clone();
        let task = tokio::spawn(async move {
            let (begun_ms, mut measured) = (now_ms(), Measured::new());
            let mut tick = interval(EVERY);
            tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    _ = &mut stopped => return measured,
                    _ = tick.tick() => {}
                }
                let at_s = (now_ms() - begun_ms) as f64 / 1_000.0;
                let mut add = |name: String, floor: f64, life: u32, value: f64| {
                    let series = measured.entry(name).or_insert_with(|| Series { floor, points: Vec::new() });
                    series.points.push(Point { at_s, life, value });
                };
                for process in &deployment.processes {
                    let (life, name) = (process.lives(), process.name());
                    let Some((mib, files)) = process.pid().and_then(of_process) else { continue };
                    add(format!("{name}: memory, MiB"), PROCESS_MIB, life, mib);
                    add(format!("{name}: open files"), FILES, life, files);
                }
                let urls = deployment.urls();
                if let Ok(Some(mib)) = timeout(ANSWER_MAX, redis_mib(&urls.redis)).await {
                    add("redis: memory, MiB".to_owned(), REDIS_MIB, 0, mib);
                }
                if let Ok(Ok(rows)) = timeout(ANSWER_MAX, rows(&urls.mysql)).await {
                    for (table, count) in rows {
                        add(format!("{table}: rows"), rows_floor, 0, count as f64);
                    }
                }
            }
        });
        Self { stop, task }
    }

    /// Everything that was read.
    pub async fn stop(self) -> Measured {
        self.stop.send(()).expect("the gauge reads");
        self.task.await.expect("the gauge ends")
    }
}

/// Resident memory, MiB, and open files.
fn of_process(pid: u32) -> Option<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = kib.trim().trim_end_matches(" kB").parse().ok()?;
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some((kib * 1_024.0 / MIB, files as f64))
}

async fn redis_mib(url: &str) -> Option<f64> {
    let memory = try_redis(url, &["INFO", "memory"]).await.ok()?;
    let used = memory.as_str()?.lines().find_map(|line| line.strip_prefix("used_memory:"))?;
    used.trim().parse::<f64>().ok().map(|bytes| bytes / MIB)
}

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// Lines of one column called `line`.
pub async fn lines(url: &str, query: &str) -> Result<Vec<String>, String> {
    let mut connection = AsyncMysqlConnection::establish(url).await.map_err(|error| error.to_string())?;
    let rows: Result<Vec<Line>, _> = diesel::sql_query(query).load(&mut connection).await;
    Ok(rows.map_err(|error| error.to_string())?.into_iter().map(|row| row.line).collect())
}

/// Rows of every table.
pub async fn rows(url: &str) -> Result<BTreeMap<String, u64>, String> {
    let tables = "SELECT CONVERT(table_name USING utf8mb4) AS line FROM information_schema.tables \
        WHERE table_schema = 'seckill' AND table_name NOT LIKE '\\_\\_%'";
    let tables = lines(url, tables).await?;
    let count = |table: &String| format!("SELECT CONCAT('{table} ', COUNT(*)) AS line FROM {table}");
    let counts = tables.iter().map(count).collect::<Vec<String>>().join(" UNION ALL ");
    let counted = lines(url, &counts).await?;
    let read = |line: &String| {
        let (table, count) = line.split_once(' ')?;
        Some((table.to_owned(), count.parse().ok()?))
    };
    Ok(counted.iter().filter_map(read).collect())
}
