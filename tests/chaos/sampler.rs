//! Reads the database ten times a second while it all happens: an oversell that heals before the end is still one.
//!
//! Output: JSON lines `{"at_ms","sale","granted","stock","ordered"}`; while the database is down `{"at_ms","away"}`. One
//! statement reads everything, so each reading is one snapshot.

use crate::clients::clock::now_ms;
use diesel::QueryableByName;
use diesel::sql_types::Text;
use diesel_async::{AsyncConnection, AsyncMysqlConnection, RunQueryDsl};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

const EVERY: Duration = Duration::from_millis(100);
const ANSWER_MAX: Duration = Duration::from_secs(2);

const READ: &str = "SELECT JSON_OBJECT('sale', CONVERT(s.sale_id USING utf8mb4), 'granted', s.granted, 'stock', s.stock, \
    'ordered', CAST(COALESCE(o.units, 0) AS SIGNED)) AS line FROM sales s \
    LEFT JOIN (SELECT sale_id, SUM(IF(state IN ('EXPIRED', 'CANCELLED'), 0, quantity)) AS units FROM orders GROUP BY sale_id) o ON o.sale_id = s.sale_id";

#[derive(QueryableByName)]
struct Line {
    #[diesel(sql_type = Text)]
    line: String,
}

/// A sampler at work.
pub struct Sampler {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Sampler {
    /// Starts reading; the samples go to `file`, which is created empty.
    pub fn start(mysql_url: &str, file: &Path) -> Self {
        let (stop, stopped) = oneshot::channel();
        let out = BufWriter::new(File::create(file).expect("the samples' file"));
        let task = tokio::spawn(sample(mysql_url.to_owned(), out, stopped));
        Self { stop, task }
    }

    /// Ends after one last reading; all samples are in the file then.
    pub async fn stop(self) {
        self.stop.send(()).expect("the sampler runs");
        self.task.await.expect("the sampler ends");
    }
}

async fn sample(url: String, mut out: BufWriter<File>, mut stopped: oneshot::Receiver<()>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut connection = None;
    let mut last = false;
    while !last {
        tokio::select! {
            _ = &mut stopped => last = true,
            _ = tick.tick() => {}
        }
        let at_ms = now_ms();
        // What did not answer in time is dropped with its connection; the next reading makes a new one.
        let answered = timeout(ANSWER_MAX, read(&url, connection.take())).await;
        match answered {
            Ok(Ok((kept, lines))) => {
                connection = Some(kept);
                for line in lines {
                    writeln!(out, "{{\"at_ms\":{at_ms},{}", line.strip_prefix('{').expect("an object"))
                        .expect("written");
                }
            }
            Ok(Err(error)) => writeln!(out, "{}", json!({"at_ms": at_ms, "away": error})).expect("written"),
            Err(_) => writeln!(out, "{}", json!({"at_ms": at_ms, "away": "no answer"})).expect("written"),
        }
    }
    out.flush().expect("written");
}

async fn read(
    url: &str,
    connection: Option<AsyncMysqlConnection>,
) -> Result<(AsyncMysqlConnection, Vec<String>), String> {
    let mut connection = match connection {
        Some(connection) => connection,
        None => AsyncMysqlConnection::establish(url).await.map_err(|error| error.to_string())?,
    };
    let lines: Vec<Line> = diesel::sql_query(READ).load(&mut connection).await.map_err(|error| error.to_string())?;
    Ok((connection, lines.into_iter().map(|line| line.line).collect()))
}
