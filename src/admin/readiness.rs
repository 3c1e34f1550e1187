//! `/readyz`: whether this process may serve: it has started, the settings of Redis let it sell, and it is not about to end.
//!
//! Input: a probe, and the last results of the probes of servers ([`server_probes`](super::server_probes)). Output: an answer at
//! once: it waits for no server, so that a silent server never makes it later than a balancer's limit. A server that was reached and is away makes
//! no process unready: all processes share it, and a balancer would send buyers to none of them, while each still does what it can.
//! Probes that have stopped are trouble of this process alone. A crash leaves nothing.

use super::server_probes::{PROBE_MAX, ProbeKind, ServerProbe, ServerProbes};
use crate::p1_entry::access_tokens::KeyHealth;
use crate::roles::{Role, Servers};
use crate::runtime::Stopper;
use std::time::Duration;

/// A result that is older shows that this process stood still or does not get to its work: each probe ends within [`PROBE_MAX`],
/// whatever the servers do, and the next one begins a second later.
const AGE_MAX: Duration = Duration::from_secs(10);
const _: () = assert!(AGE_MAX.as_secs() > 3 * PROBE_MAX.as_secs(), "a slow server is not trouble of this process");

/// What is known of that which the roles of a process need.
pub struct Readiness {
    probes: ServerProbes,
    stopper: Stopper,
    keys: Option<KeyHealth>,
}

impl Readiness {
    /// Probes what `roles` need, in the runtime this is called in, until it is dropped; unready once the stopper is pulled.
    #[must_use]
    pub fn new(servers: &Servers, roles: &[Role], stopper: Stopper) -> Self {
        let needed_by = |by: &[Role]| roles.iter().any(|role| by.contains(role));
        let mut kinds = Vec::new();
        if needed_by(&[Role::Api, Role::Relay, Role::Reconcile]) {
            // Only the api role must not sell on a server with such settings; the other roles finish what was sold.
            kinds.push(ProbeKind::Redis { sells: roles.contains(&Role::Api) });
        }
        if needed_by(&[Role::Relay, Role::Consumer]) {
            kinds.push(ProbeKind::Rabbit);
        }
        if needed_by(&[Role::Api, Role::Consumer, Role::Reconcile]) {
            kinds.push(ProbeKind::Mysql);
        }
        Self { probes: ServerProbes::start(servers, &kinds), keys: None, stopper }
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

    /// The last result of each probe, and the keys. Waits for nothing.
    #[must_use]
    pub fn needs(&self) -> Vec<ServerProbe> {
        let mut needs = self.probes.last();
        needs.iter_mut().for_each(judge_age);
        needs.extend(self.keys.as_ref().and_then(of_keys));
        needs
    }
}

/// A result that is too old says nothing of its server any more; this process is in trouble.
fn judge_age(need: &mut ServerProbe) {
    let Some(age) = need.age_ms.map(Duration::from_millis).filter(|age| *age > AGE_MAX) else { return };
    (need.ok, need.holds_back) = (false, true);
    need.problem = Some(format!("last probed {} s ago: this process stood still, or is overloaded", age.as_secs()));
}

/// A process without keys refuses every buyer. With old ones it sells, however long the issuer is away.
fn of_keys(keys: &KeyHealth) -> Option<ServerProbe> {
    let problem = keys.problem().or_else(|| (!keys.has_keys()).then(|| "not read yet".to_owned()))?;
    let ok = keys.has_keys();
    let probe = ServerProbe { name: "keys", ok, problem: None, holds_back: !ok, warnings: Vec::new(), age_ms: None };
    Some(match probe.ok {
        true => ServerProbe { warnings: vec![format!("the keys that are there go on being used: {problem}")], ..probe },
        false => ServerProbe { problem: Some(problem), ..probe },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_too_old_is_trouble_of_this_process_and_a_server_that_is_away_is_not() {
        let away = |age_ms: u64| {
            let problem = Some("no answer within 2 s".to_owned());
            let mut need = ServerProbe {
                name: "redis",
                ok: false,
                problem,
                holds_back: false,
                warnings: Vec::new(),
                age_ms: Some(age_ms),
            };
            judge_age(&mut need);
            need
        };
        assert!(!away(10_000).holds_back, "found within the bound, whatever was found");
        let stood_still = away(24_000);
        assert!(stood_still.holds_back && !stood_still.ok);
        assert_eq!(
            stood_still.problem.as_deref(),
            Some("last probed 24 s ago: this process stood still, or is overloaded")
        );
    }
}
