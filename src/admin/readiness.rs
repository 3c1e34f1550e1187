//! `/readyz`: whether this process may serve. The servers of its roles answer, and their settings keep the guarantees.
//!
//! Input: a probe. Output: one answer a server, at most a second old. A crash leaves nothing.

use crate::roles::{Role, Servers};
use crate::store::mysql::checks;
use crate::store::rabbit::broker_info;
use crate::store::redis::{RedisFault, Setting};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// An answer about readiness is reused for this long, so that probes cost nothing.
const FRESH: Duration = Duration::from_secs(1);
/// One server may take this long to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

/// One thing a process needs.
#[derive(Debug, Clone, Serialize)]
pub struct ServerProbe {
    /// `redis`, `rabbitmq` or `mysql`.
    pub name: &'static str,
    /// Whether it answers and may be used.
    pub ok: bool,
    /// Why it may not be used.
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
    last: Mutex<Option<(Instant, Vec<ServerProbe>)>>,
}

impl Readiness {
    /// For these roles.
    #[must_use]
    pub fn new(servers: Servers, roles: Vec<Role>) -> Self {
        Self { servers, roles, last: Mutex::default() }
    }

    /// What is there and what is missing; at most a second old.
    pub async fn probe(&self) -> Vec<ServerProbe> {
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
            let asked = tokio::time::timeout(PROBE_TIMEOUT, broker_info(&self.servers.rabbit)).await;
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

    async fn mysql(&self) -> ServerProbe {
        let mut warnings = Vec::new();
        let asked = tokio::time::timeout(PROBE_TIMEOUT, checks::checks(&self.servers.db)).await.map(|done| {
            let wrong = done.map_err(|error| error.to_string())?.into_iter().filter(|check| !check.ok);
            warnings
                .extend(wrong.map(|check| format!("{} is {}, expected {}", check.name, check.value, check.expected)));
            Ok(())
        });
        ServerProbe { warnings, ..probe("mysql", asked) }
    }

    async fn redis(&self) -> ServerProbe {
        let redis = &self.servers.redis;
        // Only the api role must not sell on such a server; the other roles finish what was sold.
        let sells = self.roles.contains(&Role::Api);
        let mut warnings = Vec::new();
        let asked = tokio::time::timeout(PROBE_TIMEOUT, redis.health.settings()).await.map(|done| match done {
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
        ServerProbe { warnings, ..probe("redis", asked) }
    }
}

fn probe(name: &'static str, asked: Result<Result<(), String>, tokio::time::error::Elapsed>) -> ServerProbe {
    let problem = match asked {
        Ok(Ok(())) => None,
        Ok(Err(problem)) => Some(problem),
        Err(_) => Some(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())),
    };
    ServerProbe { name, ok: problem.is_none(), problem, warnings: Vec::new() }
}
