//! What the balancer in front of the hosts sees: each api's `/readyz`, asked with the limit of its checks, and the balancer's own
//! words on which api is out of service. Without that balancer it watches nothing.
//!
//! Output: lines with their times, for the results' file.

use crate::clients::clock::now_ms;
use crate::network::{NUMBERS, Number};
use crate::servers::{balancer, roles};
use crate::time::time_passes;
use seckill::roles::Role;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;

/// As `timeout check` of `deploy/three-hosts/haproxy.cfg`.
const CHECK: Duration = Duration::from_millis(1_500);
const PACE_MS: u64 = 250;

/// One thing that was seen.
struct Seen {
    at_ms: u64,
    what: Value,
}

/// Watches until it is stopped.
pub struct FrontWatch {
    stopping: Arc<AtomicBool>,
    tasks: JoinSet<Vec<Seen>>,
}

impl FrontWatch {
    /// Starts watching.
    pub fn start() -> Self {
        let (stopping, mut tasks) = (Arc::<AtomicBool>::default(), JoinSet::new());
        if roles::through_balancers() {
            tasks.spawn(words(stopping.clone()));
            for number in NUMBERS {
                tasks.spawn(readiness(number, stopping.clone()));
            }
        }
        Self { stopping, tasks }
    }

    /// What changed, in its order, with the seconds since the fault.
    pub async fn stop(mut self, fault_ms: u64) -> Vec<Value> {
        self.stopping.store(true, Relaxed);
        let mut all = Vec::new();
        while let Some(seen) = self.tasks.join_next().await {
            all.extend(seen.expect("a watch ends"));
        }
        all.sort_by_key(|seen| seen.at_ms);
        let since = |at_ms: u64| (at_ms as f64 - fault_ms as f64) / 1000.0;
        all.into_iter().map(|seen| json!({ "s": since(seen.at_ms), "what": seen.what })).collect()
    }
}

/// New lines of the balancer's log.
async fn words(stopping: Arc<AtomicBool>) -> Vec<Seen> {
    let lines = || {
        let text = std::fs::read_to_string(balancer::front_log()).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let (mut seen, mut known) = (Vec::new(), lines().len());
    while !stopping.load(Relaxed) {
        for line in lines().split_off(known.min(lines().len())) {
            known += 1;
            seen.push(Seen { at_ms: now_ms(), what: json!({ "haproxy": line }) });
        }
        time_passes(100).await;
    }
    seen
}

/// What `/readyz` of a host's api answers, each time that it is another answer. 0: none within the limit.
async fn readiness(number: Number, stopping: Arc<AtomicBool>) -> Vec<Seen> {
    let http = reqwest::Client::builder().no_proxy().timeout(CHECK).connect_timeout(CHECK);
    let http = http.build().expect("a client");
    let url = format!("http://{}/readyz", roles::admin_address(number, Role::Api));
    let (mut seen, mut last) = (Vec::new(), None);
    while !stopping.load(Relaxed) {
        let at_ms = now_ms();
        let status = http.get(&url).send().await.map_or(0, |answer| answer.status().as_u16());
        if last.replace(status) != Some(status) {
            seen.push(Seen { at_ms, what: json!({ "api": number, "readyz": status }) });
        }
        time_passes(PACE_MS).await;
    }
    seen
}
