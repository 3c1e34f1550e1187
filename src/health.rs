//! Whether this process may serve: the servers answer, and their settings keep the promises.

use crate::p2_reserve::Guard;
use crate::roles::{Role, RoleError, Servers};
use crate::runtime::Stopper;
use crate::store::mysql::{Db, checks};
use crate::store::rabbit::broker_info;
use crate::store::redis::{RedisFault, Setting};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A message about a server that is away is repeated this often.
const REMIND: Duration = Duration::from_secs(5);
/// An answer about readiness is reused for this long, so that probes cost nothing.
const FRESH: Duration = Duration::from_secs(1);
/// One server may take this long to answer a probe.
const PROBE: Duration = Duration::from_secs(2);

/// Waits until Redis answers and its settings let the api role sell. Says what it waits for.
pub async fn wait_until_safe(guard: &Guard, stopper: &Stopper) {
    let mut told: Option<Instant> = None;
    while !stopper.is_stopped() {
        let problem = match guard.look().await {
            Ok(None) => return,
            Ok(Some(refusal)) => format!("{refusal}; not serving until it is changed"),
            Err(error) => format!("waiting for redis: {error}"),
        };
        if told.is_none_or(|at| at.elapsed() > REMIND) {
            tracing::warn!("{problem}");
            told = Some(Instant::now());
        }
        stopper.sleep(Duration::from_millis(200)).await;
    }
}

/// Tells once what in the database's settings weakens a guarantee (window 82), as soon as it can be asked. Landing goes on:
/// what such a database loses is landed again from the ledger. Returns when it is stopped, because a task of a role that ends
/// earlier ends the process.
///
/// # Errors
/// None.
pub async fn tell_database_doubts(db: Db, stopper: Stopper) -> Result<(), RoleError> {
    while !stopper.is_stopped() {
        if let Ok(checks) = checks::checks(&db).await {
            for check in checks.iter().filter(|check| !check.ok) {
                tracing::warn!(
                    phase = "p4_persist", setting = check.name, value = %check.value, expected = check.expected,
                    "a setting of the database weakens a guarantee; seckill doctor says what to change"
                );
            }
            stopper.stopped().await;
        }
        stopper.sleep(FRESH).await;
    }
    Ok(())
}

/// One thing a process needs.
#[derive(Debug, Clone, Serialize)]
pub struct Probe {
    /// What it is.
    pub name: &'static str,
    /// Whether it is there.
    pub ok: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// What weakens a guarantee although the process serves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Probes what the roles of a process need.
pub struct Readiness {
    servers: Servers,
    roles: Vec<Role>,
    last: Mutex<Option<(Instant, Vec<Probe>)>>,
}

impl Readiness {
    /// For these roles.
    #[must_use]
    pub fn new(servers: Servers, roles: Vec<Role>) -> Self {
        Self { servers, roles, last: Mutex::default() }
    }

    /// What is there and what is missing; at most a second old.
    pub async fn probe(&self) -> Vec<Probe> {
        let mut last = self.last.lock().await;
        if let Some((at, probes)) = last.as_ref()
            && at.elapsed() < FRESH
        {
            return probes.clone();
        }
        let (redis, rabbit, mysql) = self.needs();
        let mut probes = Vec::new();
        if redis {
            probes.push(self.redis().await);
        }
        if rabbit {
            let asked = tokio::time::timeout(PROBE, broker_info(&self.servers.rabbit)).await;
            probes.push(probe("rabbitmq", asked.map(|done| done.map(|_info| ()).map_err(|e| e.to_string()))));
        }
        if mysql {
            probes.push(self.mysql().await);
        }
        *last = Some((Instant::now(), probes.clone()));
        probes
    }

    fn needs(&self) -> (bool, bool, bool) {
        let any = |needs: fn(Role) -> bool| self.roles.iter().any(|role| needs(*role));
        (
            any(|role| matches!(role, Role::Api | Role::Relay | Role::Reconcile)),
            any(|role| matches!(role, Role::Relay | Role::Consumer)),
            any(|role| matches!(role, Role::Api | Role::Consumer | Role::Reconcile)),
        )
    }

    async fn mysql(&self) -> Probe {
        let mut warnings = Vec::new();
        let asked = tokio::time::timeout(PROBE, checks::checks(&self.servers.db)).await.map(|done| {
            let wrong = done.map_err(|error| error.to_string())?.into_iter().filter(|check| !check.ok);
            warnings
                .extend(wrong.map(|check| format!("{} is {}, expected {}", check.name, check.value, check.expected)));
            Ok(())
        });
        Probe { warnings, ..probe("mysql", asked) }
    }

    async fn redis(&self) -> Probe {
        let redis = &self.servers.redis;
        // Only who sells must not: the others bring to its end what was sold.
        let sells = self.roles.contains(&Role::Api);
        let mut warnings = Vec::new();
        let asked = tokio::time::timeout(PROBE, redis.health.settings()).await.map(|done| match done {
            Ok(settings) => {
                let (broken, weak): (Vec<_>, Vec<_>) =
                    settings.into_iter().filter(|setting| !setting.ok).partition(|setting| setting.required && sells);
                warnings.extend(weak.iter().map(Setting::headline));
                let broken: Vec<String> = broken.iter().map(Setting::headline).collect();
                if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
            }
            Err(RedisFault::Refused(error)) if !redis.health.is_strict() || !sells => {
                warnings.push(format!("the settings cannot be checked: {error}"));
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        });
        Probe { warnings, ..probe("redis", asked) }
    }
}

fn probe(name: &'static str, asked: Result<Result<(), String>, tokio::time::error::Elapsed>) -> Probe {
    let problem = match asked {
        Ok(Ok(())) => None,
        Ok(Err(problem)) => Some(problem),
        Err(_) => Some(format!("no answer within {} s", PROBE.as_secs())),
    };
    Probe { name, ok: problem.is_none(), problem, warnings: Vec::new() }
}
