//! A drop from its file to the verdict: created as a shop does, sold to a crowd and to cheaters while processes die, judged at rest.

use crate::checker::{DropTerms, Played, SaleTerms, judge};
use crate::client::Client;
use crate::crowd::{self, until};
use crate::report::Report;
use crate::roles::{Kills, Roles, die_in_stack};
use crate::rows::Rows;
use crate::support::world::admin_port::TOKEN;
use crate::support::world::{World, pause};
use crate::target::{FACTS, Target};
use crate::{file, support::buyers::passes::PASS_SECRET, tricks};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use seckill::runtime::now_ms;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// A drop that is hidden is published this long after it could sell.
const HIDDEN_MS: i64 = 1_200;
/// All that was accepted has its outcome, and units are where they belong, within this time.
const REST: Duration = Duration::from_secs(60);
/// Where mechanisms are left out it may never be so.
const HOPELESS: Duration = Duration::from_secs(8);
/// The last part of the time in which a raffle is entered.
const ENTERED_MS: i64 = 3_500;
/// What every process of the private system is set to.
const SHARDS: &str = "redis.shards=2";
/// Attempts that outlast deaths.
const LASTING: [&str; 4] =
    ["p3_relay.attempts_max=30", "p4_persist.attempts_max=30", "runtime.drain_ms=3000", "http.workers_count=2"];

/// A system of its own: servers of this test binary, one process of each role; `faults`: without some mechanisms, as `FAILPOINTS` has it.
pub async fn on_a_system_of_its_own(name: &str, seed: u64, faults: &str) -> Report {
    let (passes, admin) = (format!("passes.secrets={PASS_SECRET}"), format!("admin.token={TOKEN}"));
    let sets: Vec<&str> = [FACTS, &passes, &admin, SHARDS].into_iter().chain(LASTING).collect();
    let world = World::with(&[], &sets).await;
    let mut roles = Roles::start(&world, &sets, faults).await;
    let s = &world.settings;
    let target = Target {
        api: roles.api.clone(),
        admin: roles.admin.clone(),
        admin_token: TOKEN.to_owned(),
        secret: s.auth.signing_secret().expose().to_owned(),
        pass_secret: Some(PASS_SECRET.to_owned()),
        facts_by_token: true,
        mysql: s.mysql.url.expose().to_owned(),
        redis: s.redis.url.expose().to_owned(),
        prefix: s.redis.prefix.clone(),
        shards: s.redis.shards,
        arguments: world
            .sets()
            .into_iter()
            .chain(sets.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]))
            .collect(),
        stack: None,
    };
    let run = Run { rest: if faults.is_empty() { REST } else { HOPELESS }, ..Run::of(name, "", target, seed) };
    run.play(async |window| roles.die(&world, seed, window).await).await
}

/// The stack of `make run` whose `dev.json` is in `folder`. It lives on, so the ids get a suffix.
pub async fn on_the_stack(folder: &Path, name: &str, seed: u64) -> Report {
    let suffix = format!("-{:04x}", rand::random::<u16>());
    let run = Run::of(name, &suffix, Target::running(folder), seed);
    let folder = run.client.target.stack.clone().expect("a stack");
    run.play(async |window| die_in_stack(&folder, seed, window).await).await
}

struct Run {
    name: String,
    file: Value,
    seed: u64,
    client: Arc<Client>,
    /// Longest wait for rest.
    rest: Duration,
}

impl Run {
    fn of(name: &str, suffix: &str, target: Target, seed: u64) -> Self {
        let file = file::moved(file::read(name), now_ms(), suffix);
        target.can_play(&file);
        let (starts_ms, _) = DropTerms::of(&file, None).window();
        let terms = DropTerms::of(&file, Some(starts_ms + HIDDEN_MS));
        Self { name: name.to_owned(), file, seed, client: Arc::new(Client::new(target, terms)), rest: REST }
    }

    /// By the command line, from a file.
    fn create(&self) {
        let folder = crate::files::Folder::new("drop-file");
        let path = folder.path().join("drop.json");
        std::fs::write(&path, self.file.to_string()).expect("written");
        let path = path.display().to_string();
        self.client.target.must_call(&["drop", "create", "--warm", "--file", &path]);
    }

    async fn play(self, dies: impl AsyncFnOnce((i64, i64)) -> Kills) -> Report {
        let begun = Instant::now();
        self.create();
        let (mut tasks, client) = (JoinSet::new(), &self.client);
        let mut seeds = StdRng::seed_from_u64(self.seed);
        let buyers = crowd::send(client, seeds.random(), &mut tasks);
        let cheaters = tricks::send(client, seeds.random(), &mut tasks);
        let (published_ms, kills) = tokio::join!(self.publish(), dies(self.dies_in()));
        tasks.join_all().await;
        let terms = DropTerms::of(&self.file, published_ms);
        let rows = Rows { target: &client.target, terms: &terms };
        let (accepted, audit) = (client.accepted(), self.rest(&rows).await);
        let (books, (log, tallies)) = (rows.books(audit).await, client.logged());
        let violations = judge(&Played { terms: &terms, log: &log, books: &books });
        let (name, seed) = (self.name.clone(), self.seed);
        let mut report = Report {
            name,
            seed,
            buyers,
            cheaters,
            units: 0,
            purchases: 0,
            accepted: 0,
            offers: 0,
            unknown: 0,
            paid: 0,
            sold: 0,
            kills,
            tricks: tallies,
            violations,
            took_s: begun.elapsed().as_secs(),
        };
        report.counted(&terms, &log, &books, &accepted);
        report
    }

    /// When processes die: while it sells, and while raffles are entered and drawn.
    fn dies_in(&self) -> (i64, i64) {
        let terms = &self.client.terms;
        let (starts_ms, ends_ms) = terms.window();
        let closes_ms = terms.sales.iter().filter_map(SaleTerms::raffle_closes_ms).min();
        (closes_ms.map_or(starts_ms, |closes_ms| closes_ms - ENTERED_MS), ends_ms)
    }

    /// Publishes what is hidden, while it could sell already. When that began.
    async fn publish(&self) -> Option<i64> {
        let hidden_until_ms = self.client.terms.sales.iter().filter_map(|sale| sale.hidden_until_ms).min()?;
        until(hidden_until_ms).await;
        let begun_ms = now_ms();
        self.client.target.must_call(&["drop", "publish", &self.client.terms.drop_id]);
        Some(begun_ms)
    }

    /// Waits for rest, and for an audit that finds nothing. What the last one found.
    async fn rest(&self, rows: &Rows<'_>) -> Vec<String> {
        let (deadline, accepted) = (Instant::now() + self.rest, self.client.accepted());
        loop {
            let mut found = rows.unrest(&accepted).await;
            if found.is_empty() {
                found = rows.audit();
            }
            if found.is_empty() || Instant::now() > deadline {
                return found;
            }
            pause().await;
        }
    }
}
