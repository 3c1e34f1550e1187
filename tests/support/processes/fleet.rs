//! Real processes of every role, replaced one after another while buyers buy; each of a version of its own.

use super::killable::{KillableProcess, ProcessOptions, is_known_before};
use crate::support::world::relay_state::parked;
use crate::support::world::{World, eventually};
use seckill::domain::ids::SaleId;
use seckill::roles::Role;
use seckill::runtime::Stopper;
use seckill_bench::loadgen::{self, LoadPlan, LoadReport, OnLoadProgress};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinHandle;

/// The version of this source.
pub const THIS: &str = "";
/// One that is not there yet.
pub const NEXT: &str = "next_version=return";

/// The one before: a build of its own, which [`BUILD`] names (`make upgrade`).
pub const BEFORE: &str = "the version before";
const BUILD: &str = "SECKILL_BEFORE";

/// The program of the version before.
pub fn build_before() -> PathBuf {
    PathBuf::from(
        std::env::var_os(BUILD).expect("SECKILL_BEFORE names the program of the version before: make upgrade"),
    )
}

/// Connections of each api's crowd.
pub const CONNECTIONS: u32 = 16;
/// Purchases a second of each api's crowd.
const RATE_PER_S: f64 = 100.0;
/// Purchases that have to be accepted between two replacements.
const BETWEEN: u64 = 40;
/// Purchases of each crowd that a whole change is judged by.
const ENOUGH: u64 = 300;

struct Member {
    role: Role,
    place: usize,
    process: KillableProcess,
}

/// Buyers of one api process; they go to no other.
struct Crowd {
    plan: LoadPlan,
    accepted: Arc<AtomicU64>,
    selling: JoinHandle<LoadReport>,
}

/// The processes, and who buys from them.
pub struct Fleet {
    pub world: World,
    set: Vec<String>,
    public: Vec<SocketAddr>,
    members: Vec<Member>,
    crowds: Vec<Crowd>,
    stop: Stopper,
}

impl Fleet {
    /// `count` processes of each role, of this version, and a crowd for each api process.
    pub async fn start(world: World, sale: &SaleId, count: usize, set: &[&str]) -> Self {
        Self::start_version(world, sale, count, (set, THIS)).await
    }

    /// The same, of another version.
    pub async fn start_version(world: World, sale: &SaleId, count: usize, (set, version): (&[&str], &str)) -> Self {
        let free = || TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        let public = (0..count).map(|_| free()).collect();
        let set = set.iter().map(|set| (*set).to_owned()).collect();
        let mut fleet = Self { world, set, public, members: vec![], crowds: vec![], stop: Stopper::new() };
        for role in Role::ALL {
            for _ in 0..count {
                fleet.add(role, version).await;
            }
        }
        fleet.world.api = format!("http://{}", fleet.public[0]);
        for place in 0..count {
            let crowd = fleet.crowd(sale, place);
            fleet.crowds.push(crowd);
        }
        fleet.sells_on().await;
        fleet
    }

    fn crowd(&self, sale: &SaleId, place: usize) -> Crowd {
        let accepted = Arc::new(AtomicU64::new(0));
        let shown = accepted.clone();
        let progress: OnLoadProgress = Arc::new(move |progress| shown.store(progress.accepted, Relaxed));
        let plan = LoadPlan {
            api_url: format!("http://{}", self.public[place]),
            first_buyer: place as u64 * 100_000,
            connections: CONNECTIONS,
            tokens: true,
            max_retries: 1_000,
            retry_wait_max_ms: 200,
            rate_per_s: Some(RATE_PER_S),
            progress: Some(progress),
            stop: self.stop.clone(),
            ..self.world.crowd(sale, 50_000)
        };
        let running = loadgen::run(plan.clone());
        Crowd { plan, accepted, selling: tokio::spawn(async { running.await.expect("a crowd") }) }
    }

    /// Processes that are started later have this setting, too.
    pub fn set_for_later(&mut self, set: &str) {
        self.set.push(set.to_owned());
    }

    /// One more process of a role.
    pub async fn add(&mut self, role: Role, version: &str) {
        let place = self.members.iter().filter(|member| member.role == role).count();
        let process = self.spawn(role, place, version).await;
        self.members.push(Member { role, place, process });
    }

    /// SIGTERM for one process and another one of `version` in its place, under load before and after.
    pub async fn replace(&mut self, role: Role, place: usize, version: &str) {
        self.replace_quietly(role, place, version).await;
        self.sells_on().await;
    }

    /// The same when no buyer comes any more.
    pub async fn replace_quietly(&mut self, role: Role, place: usize, version: &str) {
        let at = self.at(role, place);
        let program = &mut self.members[at].process.program;
        let (code, took) = program.terminate().await;
        let said = program.stderr();
        assert!(code == Some(0) && took < Duration::from_secs(15), "{role:?}: {code:?} after {took:?}: {said}");
        // An audit that takes longer than `runtime.drain_ms` on a busy machine is left to the next process.
        assert!(said.contains("stopped") && (role == Role::Reconcile || said.contains("drained")), "{role:?}: {said}");
        self.members[at].process = self.spawn(role, place, version).await;
    }

    fn at(&self, role: Role, place: usize) -> usize {
        let wanted = |member: &Member| (member.role, member.place) == (role, place);
        self.members.iter().position(wanted).expect("a member of the fleet")
    }

    async fn spawn(&self, role: Role, place: usize, version: &str) -> KillableProcess {
        let mut set = self.set.clone();
        set.push(format!("runtime.node={}-{}-{place}", self.world.settings.runtime.node, role.name()));
        let public = self.public.get(place).filter(|_| role == Role::Api);
        set.extend(public.map(|public| format!("http.listen={public}")));
        if version == BEFORE {
            set.retain(|set| is_known_before(set));
        }
        let sets: Vec<&str> = set.iter().map(String::as_str).collect();
        let (failpoints, program) = if version == BEFORE { ("", Some(build_before())) } else { (version, None) };
        let options = ProcessOptions { failpoints, program, sets: &sets, ..ProcessOptions::default() };
        let process = self.world.spawn(role.name(), options);
        eventually("a process that answers", async || match public {
            Some(public) => self.world.http.get(format!("http://{public}/v1/sales")).send().await.is_ok(),
            None => process.is_alive().await,
        })
        .await;
        process
    }

    /// Waits until the first process of a role has said something.
    pub async fn until_logged(&mut self, role: Role, what: &str) {
        let at = self.at(role, 0);
        self.members[at].process.program.until_logged(what).await;
    }

    /// Waits until every crowd has bought some more.
    pub async fn sells_on(&self) {
        for crowd in &self.crowds {
            let before = crowd.accepted.load(Relaxed);
            eventually("purchases", async || {
                assert!(!crowd.selling.is_finished(), "replacements are to happen under load");
                crowd.accepted.load(Relaxed) >= before + BETWEEN
            })
            .await;
        }
    }

    /// Ends the buying; every 202 has to become CONFIRMED.
    pub async fn all_confirmed(&mut self) -> Vec<LoadReport> {
        self.stop.stop();
        let mut reports = Vec::new();
        for Crowd { plan, selling, .. } in self.crowds.drain(..) {
            let sold = selling.await.expect("a crowd");
            assert_eq!((sold.accepted_twice, sold.replays_broken), (0, 0));
            let plan = LoadPlan { stop: Stopper::new(), ..plan };
            let asked = loadgen::await_outcomes(&plan, &sold.accepted_requests, Duration::from_secs(60)).await;
            let outcomes = asked.expect("outcomes");
            assert!(
                outcomes.all_final() && outcomes.confirmed == sold.accepted,
                "{} accepted: {outcomes:?}",
                sold.accepted
            );
            reports.push(sold);
        }
        reports
    }

    /// The end of a change that no buyer may notice: every 202 is an order, nothing was parked on the way, the books balance.
    pub async fn finish_unnoticed(mut self) {
        // Quick replacements leave time for few.
        for crowd in &self.crowds {
            eventually("enough purchases", async || crowd.accepted.load(Relaxed) > ENOUGH).await;
        }
        self.all_confirmed().await;
        assert_eq!(self.world.mq_dlq().await, Vec::<String>::new());
        assert_eq!(parked(&self.world).await, 0);
        assert_eq!(self.world.rows("failed_request", "1 = 1").await, 0);
        self.finish().await;
    }

    /// The audit, and an orderly end of all.
    pub async fn finish(mut self) {
        self.world.finish().await;
        for member in &mut self.members {
            assert_eq!(member.process.program.terminate().await.0, Some(0), "{:?}", member.role);
        }
    }
}
