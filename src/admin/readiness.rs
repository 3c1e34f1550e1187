//! `/readyz`: whether this process may serve: it has started, the settings of Redis let it sell, and it is not about to end.
//!
//! Input: a probe. Output: one answer a server, at most a second old. A server that was reached and is away makes no process
//! unready: all processes share it, and a balancer would send buyers to none of them, while each still does what it can. A crash
//! leaves nothing.

use super::cached::Cached;
use crate::p1_entry::access_tokens::KeyHealth;
use crate::roles::{Role, Servers};
use crate::runtime::Stopper;
use crate::store::mysql::checks;
use crate::store::rabbit::BrokerProbe;
use crate::store::redis::{RedisFault, Setting};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An answer about readiness is used again for this long, milliseconds, so that probes cost nothing.
const FRESH_MS: u64 = 1_000;
/// One server may take this long to answer a probe.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);

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
}

/// Probes what the roles of a process need.
pub struct Readiness {
    servers: Servers,
    roles: Vec<Role>,
    stopper: Stopper,
    broker: BrokerProbe,
    keys: Option<KeyHealth>,
    /// Names of the servers that have answered since the start.
    reached: Mutex<BTreeSet<&'static str>>,
    last: Cached<Vec<ServerProbe>>,
}

impl Readiness {
    /// Probes for a process that runs `roles` until the stopper is pulled.
    #[must_use]
    pub fn new(servers: Servers, roles: Vec<Role>, stopper: Stopper) -> Self {
        let broker = BrokerProbe::new(servers.rabbit.clone());
        let reached = Mutex::default();
        Self { servers, roles, keys: None, stopper, broker, reached, last: Cached::new(FRESH_MS) }
    }

    /// The same, with the keys that this process checks access tokens with.
    #[must_use]
    pub(crate) fn with_keys(mut self, keys: Option<KeyHealth>) -> Self {
        self.keys = keys;
        self
    }

    /// Whether the process finishes what it has and takes in nothing new: a balancer sends the next buyer elsewhere.
    pub(super) fn is_draining(&self) -> bool {
        self.stopper.is_stopped()
    }

    /// One probe for each server that the roles need; at most a second old.
    pub async fn probe(&self) -> Vec<ServerProbe> {
        self.last.get(self.probe_now()).await.to_vec()
    }

    async fn probe_now(&self) -> Vec<ServerProbe> {
        let needed_by = |roles: &[Role]| self.roles.iter().any(|role| roles.contains(role));
        let mut probes = Vec::new();
        if needed_by(&[Role::Api, Role::Relay, Role::Reconcile]) {
            probes.push(self.redis().await);
        }
        if needed_by(&[Role::Relay, Role::Consumer]) {
            let asked = tokio::time::timeout(PROBE_TIMEOUT, self.broker.look()).await;
            probes.push(probe("rabbitmq", asked.map(|done| done.map_err(|error| error.to_string()))));
        }
        if needed_by(&[Role::Api, Role::Consumer, Role::Reconcile]) {
            probes.push(self.mysql().await);
        }
        self.judge(&mut probes);
        probes.extend(self.keys.as_ref().and_then(of_keys));
        probes
    }

    /// Of servers: one that does not answer holds back a process that has never reached it.
    fn judge(&self, probes: &mut [ServerProbe]) {
        // A panic elsewhere leaves it whole.
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        for probe in probes {
            let answers = probe.ok || probe.holds_back;
            if answers {
                reached.insert(probe.name);
            }
            probe.holds_back |= !reached.contains(probe.name);
            let gauge = metrics::gauge!("seckill_server_answers", "server" => probe.name);
            gauge.set(if answers { 1.0 } else { 0.0 });
        }
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
        let (mut warnings, mut forbids) = (Vec::new(), false);
        let asked = tokio::time::timeout(PROBE_TIMEOUT, redis.health.settings()).await.map(|done| match done {
            Ok(settings) => {
                let (broken, weak): (Vec<_>, Vec<_>) =
                    settings.into_iter().filter(|setting| !setting.ok).partition(|setting| setting.required && sells);
                warnings.extend(weak.iter().map(Setting::headline));
                let broken: Vec<String> = broken.iter().map(Setting::headline).collect();
                forbids = !broken.is_empty();
                if broken.is_empty() { Ok(()) } else { Err(broken.join("; ")) }
            }
            Err(RedisFault::Refused(error)) if !redis.health.is_strict() || !sells => {
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
        ServerProbe { warnings, holds_back: forbids, ..probe("redis", asked) }
    }
}

/// A process without keys lets nobody in. With old ones it sells, however long the issuer is away.
fn of_keys(keys: &KeyHealth) -> Option<ServerProbe> {
    let problem = keys.problem().or_else(|| (!keys.has_keys()).then(|| "not read yet".to_owned()))?;
    let ok = keys.has_keys();
    let probe = ServerProbe { name: "keys", ok, problem: None, holds_back: !ok, warnings: Vec::new() };
    Some(match probe.ok {
        true => ServerProbe { warnings: vec![format!("the keys that are there go on being used: {problem}")], ..probe },
        false => ServerProbe { problem: Some(problem), ..probe },
    })
}

fn probe(name: &'static str, asked: Result<Result<(), String>, tokio::time::error::Elapsed>) -> ServerProbe {
    let problem = match asked {
        Ok(Ok(())) => None,
        Ok(Err(problem)) => Some(problem),
        Err(_) => Some(format!("no answer within {} s", PROBE_TIMEOUT.as_secs())),
    };
    ServerProbe { name, ok: problem.is_none(), problem, holds_back: false, warnings: Vec::new() }
}
