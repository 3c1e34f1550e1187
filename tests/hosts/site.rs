//! The three hosts with everything on them, and what it takes for the whole to be well.

use crate::damaged::DamagedServer;
use crate::host::Host;
use crate::network::{self, NUMBERS, Number};
use crate::servers::{self, Kind, balancer, galera, rabbit, redis, replicated, roles, sentinel};
use crate::time::{pause, time_passes};
use seckill::dev::Child;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Longest wait for everything to be well again.
const WHOLE: Duration = Duration::from_secs(300);
/// After this time of trouble a person would act: what comes together by itself has done so before.
const BY_HAND_AFTER: Duration = Duration::from_secs(30);
/// Everything accepted has its outcome this long after the last fault.
const DRAIN: Duration = Duration::from_secs(120);
const AUDIT_EVERY_MS: u64 = 500;

/// The hosts.
pub struct Site {
    hosts: [Arc<Host>; 3],
    http: reqwest::Client,
    /// Whose file was damaged in this scene.
    damaged: Mutex<Option<Arc<DamagedServer>>>,
    /// In front of them, as long as there are hosts.
    _front: Option<Child>,
}

/// The books at rest, or what does not come to rest.
pub type Books = Result<Vec<Value>, String>;

/// How the site became whole.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    /// Seconds it took.
    pub seconds: f64,
    /// What a person would have had to do.
    pub by_hand: Vec<String>,
}

impl Site {
    /// Starts everything below `dir`.
    pub async fn start(dir: &Path, kind: Kind) -> Self {
        servers::choose(kind);
        network::lay();
        let template = dir.join("database");
        std::fs::create_dir_all(&template).expect("a folder");
        galera::install(&template);
        let hosts = NUMBERS.map(|number| Host::new(number, dir.join(format!("host{number}"))));
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(3)).build().expect("a client");
        let front = if roles::through_balancers() { Some(balancer::start_front().await) } else { None };
        let site = Self { hosts, http, damaged: Mutex::default(), _front: front };
        for host in &site.hosts {
            rabbit::start(host).await;
            balancer::start(host).await;
        }
        match kind {
            Kind::Clusters => site.start_clusters(&template).await,
            Kind::Replicas => site.start_replicas(&template).await,
        }
        site.servers_whole().await.unwrap_or_else(|lack| panic!("the servers do not become whole: {lack}"));
        roles::must_call(1, &["migrate"]).await;
        roles::must_call(1, &["topology"]).await;
        for host in &site.hosts {
            roles::start(host).await;
        }
        site.whole().await.unwrap_or_else(|lack| panic!("the roles do not become whole: {lack}"));
        site
    }

    async fn start_clusters(&self, template: &Path) {
        for host in &self.hosts {
            redis::start(host).await;
        }
        redis::join().await;
        for host in &self.hosts {
            galera::start(host, template, host.number() == galera::WRITER).await;
            // One after the other: each is copied from those before it.
            while galera::ask(host.number(), "SELECT 'up' AS value").await.is_none() {
                pause().await;
            }
        }
    }

    async fn start_replicas(&self, template: &Path) {
        for host in &self.hosts {
            sentinel::start(host).await;
        }
        sentinel::join().await;
        for number in [galera::WRITER, replicated::REPLICA] {
            replicated::start(self.host(number), template).await;
        }
        replicated::join().await;
    }

    /// A host.
    pub fn host(&self, number: Number) -> &Arc<Host> {
        self.hosts.iter().find(|host| host.number() == number).expect("one of three")
    }

    async fn servers_whole(&self) -> Result<(), String> {
        let begun = Instant::now();
        while let Some(lack) = servers::lack().await {
            if begun.elapsed() > WHOLE {
                return Err(lack);
            }
            pause().await;
        }
        Ok(())
    }

    /// Waits until every server and role is well and each Redis primary is on its own host again. What a person has to do after half a
    /// minute is done, and noted.
    pub async fn whole(&self) -> Result<Recovered, String> {
        let (begun, mut recovered) = (Instant::now(), Recovered::default());
        let mut quiet_since: Option<Instant> = None;
        let mut acts_at = begun + BY_HAND_AFTER;
        loop {
            let lack = match servers::lack().await {
                Some(lack) => Some(lack),
                None => roles::lacks(&self.http).await,
            };
            let Some(lack) = lack else {
                // An election may be under way; those who voted must forget it.
                let since = *quiet_since.get_or_insert_with(Instant::now);
                if self.is_at_home().await {
                    recovered.seconds = begun.elapsed().as_secs_f64();
                    return Ok(recovered);
                }
                if since.elapsed() > redis::REST {
                    for group in NUMBERS {
                        redis::hand_back(group).await;
                    }
                }
                pause().await;
                continue;
            };
            if begun.elapsed() > WHOLE {
                return Err(lack);
            }
            if Instant::now() > acts_at {
                // What was started again needs its time.
                acts_at += 4 * BY_HAND_AFTER;
                let done = self.act_by_hand(&lack).await;
                eprintln!("hosts: not by itself: {lack}; {done:?}");
                recovered.by_hand.extend(done);
            }
            quiet_since = None;
            time_passes(200).await;
        }
    }

    async fn is_at_home(&self) -> bool {
        if servers::kind() == Kind::Replicas {
            return true;
        }
        for group in NUMBERS {
            if redis::primary_of(group).await != Some(group) {
                return false;
            }
        }
        true
    }

    /// What the servers' own manuals say for a cluster that does not come together again.
    async fn act_by_hand(&self, lack: &str) -> Vec<String> {
        if let Some(cure) = self.cure(lack).await {
            return vec![cure];
        }
        let mut done = Vec::new();
        if servers::kind() == Kind::Clusters {
            done.extend(self.mend_galera().await);
        }
        if let Some(number) = rabbit::odd_one_out().await {
            self.host(number).kill("rabbitmq").await;
            done.push(format!("rabbitmq: restart of host {number}'s node"));
        }
        done
    }

    /// Whose file was damaged in this scene.
    pub fn damaged(&self) -> MutexGuard<'_, Option<Arc<DamagedServer>>> {
        self.damaged.lock().expect("not poisoned")
    }

    /// What was done to a file in this scene; nothing is damaged from now on.
    pub async fn undamaged(&self) -> Option<String> {
        let damaged = self.damaged().take()?;
        damaged.finish().await;
        Some(damaged.described())
    }

    async fn mend_galera(&self) -> Vec<String> {
        let mut done = Vec::new();
        if let Some(number) = galera::bootstrap_if_stuck().await {
            done.push(format!("galera: pc.bootstrap on host {number}"));
        }
        for number in galera::left_for_good().await {
            self.host(number).kill("mariadb").await;
            done.push(format!("galera: restart of host {number}'s server, which had left the cluster"));
        }
        done
    }

    /// Waits until every accepted request has its outcome, every order is paid or has ended, Redis was given the units of those that
    /// ended, and everything adds up; else what was still open. What each sale has then: as long as that stays the same, nothing came
    /// in.
    pub async fn drained(&self) -> Books {
        let deadline = Instant::now() + DRAIN;
        loop {
            let before = unfulfilled().await;
            let (code, out, err) = roles::call(1, &["audit", "--now", "--json"]).await;
            let audit: Value = serde_json::from_str(&out).unwrap_or_default();
            // Asked before and after it: an order that expires meanwhile moves what it counts.
            let unfulfilled = [before, unfulfilled().await];
            let at_rest = unfulfilled.iter().all(|open| open.as_deref() == Some("0"));
            if code == Some(0) && open_units(&audit) == 0 && at_rest {
                let sales = audit["sales"].as_array().into_iter().flatten();
                return Ok(sales.map(|sale| sale["counted"].clone()).collect());
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "audit: exit code {code:?}: {out}{err}; unpaid orders and grants not given: {unfulfilled:?}"
                ));
            }
            time_passes(AUDIT_EVERY_MS).await;
        }
    }

    /// Everything has power and passes.
    pub async fn restore(&self) {
        for host in &self.hosts {
            host.restore().await;
        }
    }

    /// How often the programs were started, beyond their first time.
    pub async fn restarts(&self) -> u32 {
        let mut count = 0;
        for host in &self.hosts {
            count += host.starts().await.iter().map(|(_, starts)| starts - 1).sum::<u32>();
        }
        count
    }
}

/// Orders that wait for their payment, and returned units that Redis was not given; `None`: the database does not answer.
async fn unfulfilled() -> Option<String> {
    let unpaid = "SELECT COUNT(*) FROM orders WHERE state = 'UNPAID'";
    let open = "SELECT COUNT(*) FROM stock_grants WHERE applied_at IS NULL";
    galera::ask(servers::writer(), &format!("SELECT CAST(({unpaid}) + ({open}) AS CHAR) AS value")).await
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
