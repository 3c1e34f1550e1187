//! The same few requests again and again over many connections, for as long as it is measured.

use crate::loadgen::Answers;
use crate::loadgen::http::{Connection, ServerAddress};
use seckill::cli::Failure;
use seckill::runtime::Stopper;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// One answer must come within this time.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What came back.
#[derive(Debug, Default)]
pub(super) struct ResponseCounts {
    pub answers: Answers,
    /// Calls without a usable answer.
    pub broken: u64,
    pub elapsed: Duration,
}

impl ResponseCounts {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people; 53 bits are enough")]
    pub fn per_s(&self, status: u16) -> f64 {
        self.answers.status(status) as f64 / self.elapsed.as_secs_f64().max(0.001)
    }

    /// Answers other than `status`, and calls without any.
    pub fn others(&self, status: u16) -> u64 {
        self.answers.total() - self.answers.status(status) + self.broken
    }
}

/// Sends `requests` in turn over `connections` for `lasting`, or until stopped.
pub(super) async fn closed_loop(
    api_url: &str,
    requests: Vec<String>,
    connections: u32,
    lasting: Duration,
    stop: &Stopper,
) -> Result<ResponseCounts, Failure> {
    let failed = |error: crate::loadgen::http::HttpError| Failure::Failed(error.to_string());
    let target = ServerAddress::resolve(api_url, TIMEOUT).await.map_err(failed)?;
    let requests = Arc::new(requests);
    let mut crew = JoinSet::new();
    let mut warm = Vec::new();
    for _ in 0..connections {
        let mut connection = Connection::new(target.clone(), TIMEOUT);
        connection.warm().await.map_err(failed)?;
        warm.push(connection);
    }
    let begin = Instant::now();
    for (at, connection) in warm.into_iter().enumerate() {
        crew.spawn(one(connection, Arc::clone(&requests), at, begin + lasting, stop.clone()));
    }
    let mut responses = ResponseCounts::default();
    while let Some(done) = crew.join_next().await {
        let (answers, broken) = done.map_err(|error| Failure::Failed(error.to_string()))?;
        responses.answers.merge(&answers);
        responses.broken += broken;
    }
    responses.elapsed = begin.elapsed();
    Ok(responses)
}

async fn one(
    mut connection: Connection,
    requests: Arc<Vec<String>>,
    first: usize,
    end: Instant,
    stop: Stopper,
) -> (Answers, u64) {
    let (mut answers, mut broken, mut next) = (Answers::default(), 0, first);
    while Instant::now() < end && !stop.is_stopped() {
        let Some(request) = requests.get(next % requests.len().max(1)) else { break };
        next += 1;
        match connection.call(request.as_bytes()).await {
            Ok(answer) => answers.add(answer.status(), ""),
            Err(_) => broken += 1,
        }
    }
    (answers, broken)
}
