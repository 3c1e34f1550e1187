//! One run: a deployment, a crowd, a nemesis; then peace, and the checker's word on what is left.

use crate::checker::{self, Verdict};
use crate::clients::Totals;
use crate::deployment::{Deployment, PREFIX};
use crate::dump::{DumpUrls, dump_with_published};
use crate::floors;
use crate::meter::Counts;
use crate::nemesis::{self, Carried, Destroyed, Kind, Record, Schedule};
use crate::probe::Probe;
use crate::process::End;
use crate::shop::Shop;
use crate::stage::{self, Everybody, HOPELESS_MS, Stage};
use crate::time::pause;
use crate::traces::{self, Losses, TraceVerdict};
use seckill::faults::Mechanism;
use seckill::roles::Role;
use seckill::runtime::now_ms;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Everything accepted has its outcome this long after the last fault; the ledger's window and the attempts fit in.
const DRAIN: Duration = Duration::from_secs(120);

/// What a run is to be.
#[derive(Debug, Clone)]
pub struct Orders {
    /// It decides the faults.
    pub seed: u64,
    /// Length of the faults.
    pub length_ms: u64,
    /// Whether P5 persists what was lost on the way. Without it nothing may be lost on the way, so nothing is destroyed that
    /// only the ledger knows: no queue is deleted or emptied, no entry deleted.
    pub repairs: bool,
    /// Settings on top of all others.
    pub set: Vec<String>,
    /// A mechanism that every process leaves out: the run has to go red.
    pub off: Option<Mechanism>,
}

/// A run that is over.
pub struct Finished {
    /// What it was to be.
    pub orders: Orders,
    /// Still running.
    pub deployment: Deployment,
    /// The sales that the crowd bought in.
    pub sales: Vec<String>,
    /// How often each kind of fault had to hit.
    pub hits: BTreeMap<Kind, usize>,
    /// What became of each fault.
    pub faults: Vec<Record>,
    /// What the crowd saw.
    pub totals: Totals,
    /// State counters of all processes and lives.
    pub states: Counts,
    /// The checker's word.
    pub verdict: Verdict,
    /// Whether every line that the processes wrote is explained.
    pub traces: TraceVerdict,
    /// Processes that ended without an order to.
    pub ends: Vec<End>,
    /// Why peace did not come, if it did not.
    pub unrest: Option<String>,
    /// From the last heal until nothing was open.
    pub drain_ms: u64,
    /// Of the servers.
    pub versions: String,
}

impl Finished {
    /// Whether nothing was lost and everything came to rest.
    pub fn is_green(&self) -> bool {
        self.verdict.is_green() && self.traces.is_green() && self.unrest.is_none()
    }

    /// What there was too little of.
    pub fn shortfalls(&self) -> Vec<String> {
        floors::shortfalls(self.orders.length_ms, &self.sales, &self.hits, &self.faults, &self.verdict.figures)
    }

    /// What is wrong.
    pub fn complaints(&self) -> String {
        let violations = self.verdict.violations.iter().map(|found| format!("{}: {}", found.rule, found.detail));
        let mut lines: Vec<String> = violations.chain(self.traces.complaints()).chain(self.unrest.clone()).collect();
        lines.push(format!("replay with: {}", self.command()));
        lines.join("\n")
    }

    /// Repeats the schedule.
    pub fn command(&self) -> String {
        let Orders { seed, length_ms, repairs, set, off } = &self.orders;
        let off = off.map_or(String::new(), |off| format!(" CHAOS_OFF={}", off.code()));
        let repairs = if *repairs { "" } else { " CHAOS_REPAIRS=0" };
        let set = if set.is_empty() { String::new() } else { format!(" CHAOS_SET={}", set.join(",")) };
        format!("make chaos SEED={seed} SECONDS={}{repairs}{set}{off}", length_ms / 1000)
    }

    /// One line for people who wait.
    pub fn summary(&self) -> String {
        let injected = self.faults.iter().filter(|fault| fault.injected).count();
        let Totals { sent, accepted, unknown, .. } = self.totals;
        format!(
            "seed {}: {injected} faults in {} s; {sent} sent, {accepted} accepted, {unknown} unknown; {} violations; {}",
            self.orders.seed,
            self.orders.length_ms / 1000,
            self.verdict.violations.len(),
            self.traces.summary()
        )
    }
}

/// Runs the schedule and everything around it.
pub async fn run(orders: Orders) -> Finished {
    eprintln!("chaos: seed {}, {} s", orders.seed, orders.length_ms / 1000);
    let stage = stage::set_up(&orders).await;
    let dir = stage.deployment.dir().to_owned();
    let probe = Arc::new(Probe::new(stage.deployment.direct_api_urls(), stage.deployment.secret()));
    let Everybody { clients, operators, meter, sampler } = stage.begin(&orders);
    let (sales, Stage { deployment, shop, .. }) = (stage.named(), stage);
    let schedule = schedule(&orders, Role::ALL.map(|role| (role, deployment.of(role).count())));
    let begun_ms = now_ms();
    let Carried { faults, destroyed } = nemesis::unleash(&deployment, &probe, &schedule, &dir).await;

    let mut unrest = deployment.try_heal().await.err();
    let healed = Instant::now();
    operators.stop().await;
    let totals = clients.stop().await;
    let patience = if orders.off.is_some() { Duration::from_millis(HOPELESS_MS) } else { DRAIN };
    let drained = deployment.drained(patience).await.map_err(|open| format!("not drained: {open}"));
    unrest = unrest.or(drained.err());
    let drain_ms = u64::try_from(healed.elapsed().as_millis()).expect("a short run");
    let fulfilled = deployment.fulfilled(patience).await.map_err(|open| format!("orders stay overdue: {open}"));
    unrest = unrest.or(fulfilled.err());
    let delivered = deployment.delivered(patience).await.map_err(|open| format!("webhooks wait: {open}"));
    unrest = unrest.or(delivered.err());
    sampler.stop().await;
    let states = meter.stop().await;
    let Ok(probe) = Arc::try_unwrap(probe) else { panic!("a probe is under way") };
    write_rest(&probe, drain_ms, &destroyed_at(&destroyed, begun_ms), &dir);
    let verdict = judge(&deployment, &shop, patience).await;
    let traces = traces::check(deployment.traces().expect("a run that is traced"), Losses::default());
    let ends = deployment.processes.iter().flat_map(|process| process.unordered_ends()).collect();
    let versions = deployment.versions().await;
    let hits = schedule.hits;
    let Ok(deployment) = Arc::try_unwrap(deployment) else { panic!("a fault is under way") };
    Finished {
        orders,
        deployment,
        sales,
        hits,
        faults,
        totals,
        states,
        verdict,
        traces,
        ends,
        unrest,
        drain_ms,
        versions,
    }
}

/// The faults of a run, and how often each kind has to hit. A run without a mechanism proves itself by what it finds.
fn schedule(orders: &Orders, counts: nemesis::Counts) -> Schedule {
    let Orders { seed, length_ms, repairs, off, .. } = *orders;
    let is_allowed = |kind: Kind| repairs || !kind.destroys();
    let mut faults = nemesis::plan(seed, length_ms, counts);
    faults.retain(|fault| is_allowed(fault.kind));
    let kinds = Kind::ALL.iter().copied().filter(|kind| off.is_none() && is_allowed(*kind));
    Schedule { seed, faults, hits: kinds.map(|kind| (kind, floors::hits(length_ms))).collect(), counts }
}

/// When messages of the broker were destroyed, Unix milliseconds, as the checker reads it.
fn destroyed_at(destroyed: &[Destroyed], begun_ms: i64) -> Vec<Value> {
    let at = |since_begin: u64| begun_ms + i64::try_from(since_begin).expect("a short run");
    destroyed.iter().map(|span| json!({ "began_ms": at(span.began_ms), "healed_ms": at(span.healed_ms) })).collect()
}

/// What the checker reads beside the dumps.
fn write_rest(probe: &Probe, drain_ms: u64, destroyed: &[Value], dir: &Path) {
    let mut history = OpenOptions::new().append(true).open(dir.join("history.jsonl")).expect("the history");
    for attempt in probe.attempts() {
        writeln!(history, "{attempt}").expect("written");
    }
    let drain = json!({ "drain_ms": drain_ms, "destroyed": destroyed });
    std::fs::write(dir.join("drain.json"), drain.to_string()).expect("written");
}

/// The checker's word, when it finds nothing unpublished any more or has waited for long enough: a redelivery may still publish it.
async fn judge(deployment: &Deployment, shop: &Shop, patience: Duration) -> Verdict {
    let dir = deployment.dir();
    let urls = deployment.urls().clone();
    let urls =
        DumpUrls { redis: urls.redis, amqp: urls.amqp, mysql: urls.mysql, prefix: PREFIX.to_owned(), damaged: false };
    let deadline = Instant::now() + patience;
    loop {
        dump_with_published(&urls, dir).await;
        shop.write(dir);
        let verdict = checker::check_with_published(dir);
        if !verdict.rules().contains(&"C12") || Instant::now() > deadline {
            return verdict;
        }
        pause().await;
    }
}
