//! The nemesis: carries out a schedule of faults, undoes each one, and samples how soon buyers are served again.
//!
//! Faults overlap on purpose, but no process, server or link is under two of them at once. What a fault did not hit (a
//! reply that never came by, an entry that was not pending, a server that was down anyway) does not count as injected.

mod kind;
mod links;
mod mysql;
mod plan;
mod rabbit;
mod redis;
mod roles;
mod steps;
#[cfg(test)]
mod tests;

pub use kind::Kind;
pub use plan::{Counts, Fault, plan};
pub use rabbit::{delete_orders, purge_dlq, purge_orders};

use crate::deployment::Deployment;
use crate::probe::Probe;
use crate::support::links::conditions::LinkConditions;
use crate::time::{pause, time_passes};
use plan::Place;
use seckill::dev::ServerKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often a kind that has missed is tried again.
const TRIES_MAX: u64 = 8;
/// Until a server that runs takes a setting back.
const UNDO: Duration = Duration::from_secs(60);

/// What became of a fault.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// As planned.
    #[serde(flatten)]
    pub fault: Fault,
    /// Whether it hit.
    pub injected: bool,
    /// What was special.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Since the beginning: when it really began and when it was over.
    pub began_ms: u64,
    /// See above.
    pub healed_ms: u64,
    /// From its end until a probe's purchase was accepted and confirmed, where that was sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery_ms: Option<u64>,
}

/// Whether a fault hit, and what was special.
struct Outcome {
    injected: bool,
    note: Option<String>,
}

impl Outcome {
    const fn of(injected: bool) -> Self {
        Self { injected, note: None }
    }
}

impl<T> From<Result<T, String>> for Outcome {
    fn from(done: Result<T, String>) -> Self {
        Self { injected: done.is_ok(), note: done.err() }
    }
}

/// Where the nemesis works.
struct Field {
    deployment: Arc<Deployment>,
    probe: Arc<Probe>,
    begun: Instant,
    /// When the broker was started last.
    broker_since: Mutex<Instant>,
    destroyed: Mutex<Vec<Destroyed>>,
}

/// When messages of the broker may have been destroyed: by a fault, or by an operator's repair of one. Milliseconds since the beginning.
#[derive(Debug, Clone, Copy)]
pub struct Destroyed {
    /// When it was asked for.
    pub began_ms: u64,
    /// When it was over.
    pub healed_ms: u64,
}

/// What came of a schedule.
pub struct Carried {
    /// Every fault.
    pub faults: Vec<Record>,
    /// What the broker lost.
    pub destroyed: Vec<Destroyed>,
}

/// What the nemesis is to do.
pub struct Schedule {
    /// What decided the faults.
    pub seed: u64,
    /// The faults, by time.
    pub faults: Vec<Fault>,
    /// How often each kind has to hit, at least.
    pub hits: BTreeMap<Kind, usize>,
    /// How many processes each role has.
    pub counts: Counts,
}

/// Carries out the whole schedule, and then again what missed too often; everything is healed when it returns. The schedule is written
/// to `nemesis.jsonl` in `dir` before it begins, what became of it to `faults.jsonl`.
pub async fn unleash(deployment: &Arc<Deployment>, probe: &Arc<Probe>, schedule: &Schedule, dir: &Path) -> Carried {
    write_lines(&dir.join("nemesis.jsonl"), &schedule.faults);
    let striker = Striker::new(deployment, probe, schedule.counts);
    let mut records = striker.field.play(&schedule.faults, 0).await;
    for again in 0..TRIES_MAX {
        let missed = schedule.missed(&records);
        if missed.is_empty() {
            break;
        }
        records.extend(striker.strike(&missed, schedule.seed.wrapping_add(again)).await);
    }
    striker.undo().await;
    records.sort_by_key(|record| record.began_ms);
    write_lines(&dir.join("faults.jsonl"), &records);
    let destroyed = striker.field.destroyed.lock().expect("not poisoned").clone();
    Carried { faults: records, destroyed }
}

/// Strikes when it is asked to.
pub struct Striker {
    field: Arc<Field>,
    counts: Counts,
}

impl Striker {
    /// Its times count from now on.
    pub fn new(deployment: &Arc<Deployment>, probe: &Arc<Probe>, counts: Counts) -> Self {
        let (deployment, probe) = (deployment.clone(), probe.clone());
        let (begun, broker_since) = (Instant::now(), Mutex::new(Instant::now()));
        let destroyed = Mutex::default();
        Self { field: Arc::new(Field { deployment, probe, begun, broker_since, destroyed }), counts }
    }

    /// A fault of each of these kinds at once, as far as their places allow; the seed decides where.
    pub async fn strike(&self, kinds: &[Kind], seed: u64) -> Vec<Record> {
        self.field.play(&plan::once_more(seed, kinds, self.counts), self.field.elapsed_ms()).await
    }

    /// Takes back what a fault could not, because its server was down at that moment.
    pub async fn undo(&self) {
        self.field.undo_settings().await;
    }
}

impl Schedule {
    /// Kinds that have to hit again, the rarest first.
    fn missed(&self, records: &[Record]) -> Vec<Kind> {
        let hits = |kind: Kind| records.iter().filter(|record| record.injected && record.fault.kind == kind).count();
        let mut short: Vec<(usize, Kind)> = self
            .hits
            .iter()
            .map(|(kind, wanted)| (hits(*kind), *kind, *wanted))
            .filter(|(hits, _, wanted)| hits < wanted)
            .map(|(hits, kind, _)| (hits, kind))
            .collect();
        short.sort_unstable();
        short.into_iter().map(|(_, kind)| kind).collect()
    }
}

fn write_lines(path: &Path, lines: &[impl Serialize]) {
    let mut file = BufWriter::new(File::create(path).expect("a file"));
    for line in lines {
        writeln!(file, "{}", serde_json::to_string(line).expect("json")).expect("written");
    }
    file.flush().expect("written");
}

impl Field {
    /// Carries these out; their times count from `from_ms` on.
    async fn play(self: &Arc<Self>, faults: &[Fault], from_ms: u64) -> Vec<Record> {
        let mut under_way = JoinSet::new();
        for mut fault in faults.iter().copied() {
            fault.at_ms += from_ms;
            time_passes(fault.at_ms.saturating_sub(self.elapsed_ms())).await;
            let field = self.clone();
            under_way.spawn(async move { field.carry_out(fault).await });
        }
        under_way.join_all().await
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).expect("a short run")
    }

    async fn carry_out(&self, fault: Fault) -> Record {
        let began_ms = self.elapsed_ms();
        let Outcome { injected, note } = self.inject(fault).await;
        let healed_ms = self.elapsed_ms();
        let sampled = match fault.target {
            Place::Process(..) | Place::Role(_) | Place::Server(_) | Place::Step(..) => true,
            Place::Link(..) | Place::Inside(..) => false,
        };
        let recovery_ms = if injected && sampled { self.probe.until_served().await } else { None };
        Record { fault, injected, note, began_ms, healed_ms, recovery_ms }
    }

    async fn inject(&self, fault: Fault) -> Outcome {
        let Fault { kind, target, length_ms, dice, .. } = fault;
        match kind {
            Kind::KillRole => self.kill_role(target),
            Kind::CrashPoint => self.crash_at_a_point(fault).await,
            Kind::FailAtStep => self.fail_at_a_step(fault).await,
            Kind::FreezeRole => self.freeze_role(target, length_ms).await,
            Kind::TerminateRole => self.terminate_role(target).await,
            Kind::NoRole => self.no_role(target, length_ms).await,
            Kind::KillServer => self.kill_server(target).await,
            Kind::FreezeServer => self.freeze_server(target, length_ms).await,
            Kind::Delay => self.conditions(fault, links::delay(dice)).await,
            Kind::Throttle => self.conditions(fault, links::throttle(dice)).await,
            Kind::NothingToServer => self.conditions(fault, links::partition(true, false)).await,
            Kind::NothingToClient => self.conditions(fault, links::partition(false, true)).await,
            Kind::Partition => self.conditions(fault, links::partition(true, true)).await,
            Kind::Cut => self.conditions(fault, LinkConditions { cut: true, ..LinkConditions::default() }).await,
            Kind::Reset => self.reset(target),
            Kind::DropReply => self.drop_reply(fault).await,
            Kind::ScriptFlush => self.redis(&["SCRIPT", "FLUSH"]).await.into(),
            Kind::ClientKill => self.redis(&["CLIENT", "KILL", "TYPE", "normal"]).await.into(),
            Kind::RewriteAof => self.redis(&["BGREWRITEAOF"]).await.into(),
            Kind::RedisFull => self.redis_full(length_ms).await,
            Kind::ForgetConsumer => self.forget_consumer(length_ms).await,
            Kind::DeleteEntry => self.delete_entry(length_ms).await,
            Kind::CloseConnections => self.broker(rabbit::CLOSE_ALL).await.into(),
            Kind::MemoryAlarm => self.memory_alarm(length_ms).await,
            Kind::Unbind => self.broker(&rabbit::unbind_orders()).await.into(),
            Kind::DeleteOrders => self.delete(&rabbit::delete_orders()).await.into(),
            Kind::DeleteRetry => self.delete(&rabbit::delete_retry(dice)).await.into(),
            Kind::Purge => self.destroy(&rabbit::purge_orders(), self.elapsed_ms()).await.into(),
            Kind::KillConnections => self.sql(mysql::KILL_ALL).await.into(),
            Kind::LockStock => self.sql(&mysql::lock_stock(length_ms)).await.into(),
            Kind::ReadOnly => self.read_only(length_ms).await,
            Kind::FewConnections => self.few_connections(length_ms).await,
            Kind::Deadlock => self.deadlock().await,
        }
    }

    /// Takes a setting of a server back, and insists on it: one that stays would be a fault that no schedule knows of.
    async fn undo<T, Asked>(&self, server: ServerKind, once: impl Fn() -> Asked)
    where
        Asked: Future<Output = Result<T, String>>,
    {
        let mut tried = Duration::ZERO;
        loop {
            // A start may take longer than a setting, and has a deadline of its own.
            drop(self.deployment.server(server).lock().await);
            let began = Instant::now();
            let Err(refused) = once().await else { return };
            pause().await;
            tried += began.elapsed();
            assert!(tried < UNDO, "a setting of {server} cannot be taken back: {refused}");
        }
    }

    /// What a fault could not undo because its server was down at that moment.
    async fn undo_settings(&self) {
        self.enough_memory().await;
        self.no_alarm().await;
        self.dead_letters().await;
        self.remove_ghosts().await;
        self.writable().await;
        self.many_connections().await;
    }
}
