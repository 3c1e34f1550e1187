//! Probes of the servers that a process needs, for `/readyz`: each in a task of its own, so that a silent server delays no other probe.
//!
//! Input: the servers. Output: the last result of each probe, and its age. A probe ends after [`PROBE_MAX`] at the latest, and the next
//! one begins up to a second later. A crash leaves nothing.

use crate::domain::fault::{Fault, Progress};
use crate::roles::Servers;
use crate::runtime::{PollInterval, Stopper, Worker, run_worker};
use crate::store::mysql::{Db, checks};
use crate::store::rabbit::BrokerProbe;
use crate::store::redis::{RedisFault, RedisHealth, Setting};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;

/// A probe takes at most this long.
pub(super) const PROBE_MAX: Duration = Duration::from_secs(2);
/// Pause after a probe, milliseconds.
const PAUSE_MS: u64 = 1_000;

/// One thing a process needs.
#[derive(Debug, Clone, Serialize)]
pub struct ServerProbe {
    /// `redis`, `rabbitmq` or `mysql`; `keys` while those of access tokens are missing or cannot be read again.
    pub name: &'static str,
    /// Whether it answers and may be used.
    pub ok: bool,
    /// Why it may not be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Whether the process is not ready because of it: it was never reached, forbids selling, or is missing here alone.
    pub holds_back: bool,
    /// What weakens a guarantee although the process serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How long ago this was found, milliseconds; not of `keys`, nor before the first probe has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// A kind of probe.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProbeKind {
    /// Whether it answers, and whether its settings let a process sell that does.
    Redis {
        /// The process runs the api role.
        sells: bool,
    },
    /// Whether the broker answers.
    Rabbit,
    /// Whether the database answers, and its settings.
    Mysql,
}

impl ProbeKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Redis { .. } => "redis",
            Self::Rabbit => "rabbitmq",
            Self::Mysql => "mysql",
        }
    }
}

/// The last result of one probe.
#[derive(Debug)]
struct LastResult {
    name: &'static str,
    /// With the time of its end; `None` before the first probe has ended.
    result: Mutex<Option<(ServerProbe, Instant)>>,
}

impl LastResult {
    fn lock(&self) -> MutexGuard<'_, Option<(ServerProbe, Instant)>> {
        // A panic elsewhere leaves it whole: it is assigned in one go.
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_age(&self) -> ServerProbe {
        match self.lock().as_ref() {
            Some((probe, at)) => {
                let age_ms = u64::try_from(at.elapsed().as_millis()).unwrap_or(u64::MAX);
                ServerProbe { age_ms: Some(age_ms), ..probe.clone() }
            }
            None => {
                ServerProbe { holds_back: true, ..result(self.name, Err("the first probe has not ended yet".into())) }
            }
        }
    }
}

/// The probes of a process. They end when it is dropped.
pub(super) struct ServerProbes {
    results: Vec<Arc<LastResult>>,
    _tasks: JoinSet<()>,
}

impl ServerProbes {
    /// Starts these probes, in the runtime this is called in.
    pub(super) fn start(servers: &Servers, kinds: &[ProbeKind]) -> Self {
        let (mut results, mut tasks) = (Vec::new(), JoinSet::new());
        for kind in kinds {
            let last = Arc::new(LastResult { name: kind.name(), result: Mutex::default() });
            results.push(last.clone());
            let server = match *kind {
                ProbeKind::Redis { sells } => ProbedServer::Redis { health: servers.redis.health.clone(), sells },
                ProbeKind::Rabbit => ProbedServer::Rabbit(Box::new(BrokerProbe::new(servers.rabbit.clone()))),
                ProbeKind::Mysql => ProbedServer::Mysql(servers.db.clone()),
            };
            let prober = Prober { server, last, was_reached: false };
            tasks.spawn(async move {
                // No step of it fails, and nothing stops it: it ends with its task.
                drop(run_worker(prober, PollInterval::idle_ms(PAUSE_MS), Stopper::new()).await);
            });
        }
        Self { results, _tasks: tasks }
    }

    /// The last result of each.
    pub(super) fn last(&self) -> Vec<ServerProbe> {
        self.results.iter().map(|last| last.with_age()).collect()
    }
}

/// A server and what a probe of it needs.
enum ProbedServer {
    Redis { health: RedisHealth, sells: bool },
    Rabbit(Box<BrokerProbe>),
    Mysql(Db),
}

/// Probes one server again and again.
struct Prober {
    server: ProbedServer,
    last: Arc<LastResult>,
    /// Whether it has answered since the start.
    was_reached: bool,
}

impl Worker for Prober {
    fn name(&self) -> &'static str {
        "readiness"
    }

    async fn step(&mut self) -> Result<Progress, Fault> {
        let mut probe = match &self.server {
            ProbedServer::Redis { health, sells } => probe_redis(health, *sells).await,
            ProbedServer::Rabbit(broker) => probe_rabbit(broker).await,
            ProbedServer::Mysql(db) => probe_mysql(db).await,
        };
        let answers = probe.ok || probe.holds_back;
        self.was_reached |= answers;
        // One that does not answer holds back a process that has never reached it.
        probe.holds_back |= !self.was_reached;
        metrics::gauge!("seckill_server_answers", "server" => probe.name).set(if answers { 1.0 } else { 0.0 });
        *self.last.lock() = Some((probe, Instant::now()));
        Ok(Progress::Idle)
    }
}

async fn probe_rabbit(broker: &BrokerProbe) -> ServerProbe {
    let answered = tokio::time::timeout(PROBE_MAX, broker.probe()).await;
    result("rabbitmq", in_time(answered.map(|done| done.map_err(|error| error.to_string()))))
}

async fn probe_mysql(db: &Db) -> ServerProbe {
    let mut warnings = Vec::new();
    let answered = tokio::time::timeout(PROBE_MAX, checks::checks(db)).await.map(|done| {
        let wrong = done.map_err(|error| error.to_string())?.into_iter().filter(|check| !check.ok);
        warnings.extend(wrong.map(|check| format!("{} is {}, expected {}", check.name, check.value, check.expected)));
        Ok(())
    });
    ServerProbe { warnings, ..result("mysql", in_time(answered)) }
}

async fn probe_redis(health: &RedisHealth, sells: bool) -> ServerProbe {
    let (mut warnings, mut forbids) = (Vec::new(), false);
    let answered = tokio::time::timeout(PROBE_MAX, health.settings()).await.map(|done| match done {
        Ok(settings) => {
            let (broken, weak): (Vec<_>, Vec<_>) =
                settings.into_iter().filter(|setting| !setting.ok).partition(|setting| setting.required && sells);
            warnings.extend(weak.iter().map(Setting::headline));
            let broken: Vec<String> = broken.iter().map(Setting::headline).collect();
            forbids = !broken.is_empty();
            if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
        }
        Err(RedisFault::Refused(error)) if !health.is_strict() || !sells => {
            warnings.push(format!("the settings cannot be checked: {error}"));
            Ok(())
        }
        // It answers; without its settings nothing is sold.
        Err(RedisFault::Refused(error)) => {
            forbids = true;
            Err(error)
        }
        Err(error) => Err(error.to_string()),
    });
    ServerProbe { warnings, holds_back: forbids, ..result("redis", in_time(answered)) }
}

fn in_time(answered: Result<Result<(), String>, Elapsed>) -> Result<(), String> {
    answered.unwrap_or_else(|_| Err(format!("no answer within {} s", PROBE_MAX.as_secs())))
}

fn result(name: &'static str, answered: Result<(), String>) -> ServerProbe {
    let problem = answered.err();
    ServerProbe { name, ok: problem.is_none(), problem, holds_back: false, warnings: Vec::new(), age_ms: None }
}
