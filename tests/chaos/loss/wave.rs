//! One wave: buyers, faults, repairs, and the comparison at its end.

use super::comparison::{WaveResult, judge};
use super::crowd::Crowd;
use super::cures::DamageRecord;
use super::faults::{SaleFault, ServerFault};
use super::plan::{Held, Scene, Wave};
use super::quiescence::at_rest;
use super::redis::Copy;
use super::testbed::Testbed;
use crate::dump::{dump, dump_stores};
use crate::nemesis::{delete_orders, purge_dlq, purge_orders};
use crate::time::{eventually, pause};
use futures::StreamExt;
use rand::SeedableRng;
use rand::rngs::StdRng;
use seckill::dev::ServerKind;
use seckill::faults::Mechanism;
use seckill::roles::Role;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sales that are created at once.
const AT_ONCE: usize = 8;

/// Records are forgotten this long after they were settled, with room for some rounds of P5; on a busy machine a round over all
/// sales takes seconds.
const TRIMMED_MAX: Duration = Duration::from_secs(180);

/// What struck.
pub struct AppliedFaults {
    /// By sale: the faults, and whether each of them hit anything.
    pub sales: BTreeMap<String, Vec<(SaleFault, bool)>>,
    /// Whole servers.
    pub wide: Vec<ServerFault>,
    /// What came of a damaged file.
    pub damage: Option<DamageRecord>,
}

/// A wave on its testbed.
struct WaveRun<'a> {
    testbed: &'a Testbed,
    wave: &'a Wave,
    crowd: Crowd,
    dir: PathBuf,
    off: Option<Mechanism>,
}

/// Plays a wave and has it judged. `off`: an equation that the product leaves out.
pub async fn play(testbed: &Testbed, wave: &Wave, off: Option<Mechanism>) -> WaveResult {
    let dir = testbed.deployment.dir().join(format!("wave-{}", wave.number));
    for part in ["reading", "before", "strike", "end"] {
        std::fs::create_dir_all(dir.join(part)).expect("a folder");
    }
    let api = testbed.deployment.direct_api_urls().remove(0);
    let play = WaveRun { testbed, wave, crowd: Crowd::new(api, testbed.deployment.secret()), dir, off };
    play.run().await
}

impl WaveRun<'_> {
    async fn run(self) -> WaveResult {
        let scenes = &self.wave.scenes;
        let create = async |scene: &Scene| self.testbed.create(&scene.sale, scene.stock, scene.limit).await;
        futures::stream::iter(scenes).map(create).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        let (early, untrimmed) = self.sell_early().await;
        let late = self.sell_late().await;
        let struck = self.apply_faults(&early, &late).await;
        // The fence is passed by the first of them. Operators work on: what is granted now meets the repairs.
        self.buy(5).await;
        for scene in scenes.iter().filter(|scene| scene.late_top_up > 0) {
            self.testbed.try_top_up(&scene.sale, scene.late_top_up).await;
        }
        let mut rested = at_rest(self.testbed, &self.dir.join("reading")).await;
        for scene in scenes.iter().filter(|scene| scene.reclaim) {
            self.testbed.try_reclaim(&scene.sale).await;
        }
        self.buy(6).await;
        rested &= at_rest(self.testbed, &self.dir.join("reading")).await;
        WaveResult { untrimmed, ..self.judged(struck, rested).await }
    }

    /// Buyers of a step.
    async fn buy(&self, step: usize) {
        self.crowd.open(self.wave.scenes.iter().map(|scene| (scene, scene.buyers[step]))).await;
    }

    /// Waits until all accepted requests are decided, but those that are stuck.
    async fn landed(&self, stuck: &HashSet<String>) {
        let accepted = self.wave.scenes.iter().flat_map(|scene| self.crowd.accepted(&scene.sale));
        let wanted: HashSet<_> = accepted.filter(|rid| !stuck.contains(rid)).collect();
        let decided = "SELECT CAST(request_id AS CHAR) AS line FROM request_outcome";
        eventually("all that can land has landed", async || {
            wanted.is_subset(&self.testbed.tables.lines(decided).await.into_iter().collect())
        })
        .await;
    }

    /// Steps 1: much is sold and settled before anything else happens.
    async fn sell_early(&self) -> (BTreeMap<String, Copy>, Vec<String>) {
        self.buy(0).await;
        self.landed(&HashSet::new()).await;
        let copies = self.copies("early").await;
        self.buy(1).await;
        self.landed(&HashSet::new()).await;
        (copies, self.trimmed().await)
    }

    /// Waits until P5 has forgotten what was settled; the sales in which it does not.
    async fn trimmed(&self) -> Vec<String> {
        let (mut redis, begun) = (self.testbed.redis().await, Instant::now());
        loop {
            let mut kept = Vec::new();
            for scene in self.wave.scenes.iter().filter(|scene| scene.aged) {
                if redis.remembered(&scene.sale).await > 0 {
                    kept.push(scene.sale.clone());
                }
            }
            if kept.is_empty() || begun.elapsed() > TRIMMED_MAX {
                return kept;
            }
            pause().await;
        }
    }

    async fn copies(&self, name: &str) -> BTreeMap<String, Copy> {
        let mut redis = self.testbed.redis().await;
        let mut copies = BTreeMap::new();
        for scene in &self.wave.scenes {
            copies.insert(scene.sale.clone(), redis.copy(&scene.sale, name).await);
        }
        self.testbed.tables.copy(name).await;
        self.testbed.copy_redis_to(&self.dir.join(name));
        copies
    }

    /// Steps 2 to 4: copies, grants and cancellations, some requests stuck, some on their way.
    async fn sell_late(&self) -> BTreeMap<String, Copy> {
        let testbed = self.testbed;
        testbed.freeze(Role::Reconcile).await;
        testbed.freeze(Role::Relay).await;
        self.buy(2).await;
        let copies = self.copies("late").await;
        for server in self.wave.wide.iter().filter_map(|wide| wide.damaged()) {
            testbed.copy_files_of(server, &self.dir.join("files")).await;
        }
        for scene in self.wave.scenes.iter().filter(|scene| scene.top_up > 0) {
            testbed.top_up(&scene.sale, scene.top_up).await;
        }
        self.buy(3).await;
        let (mut redis, mut stuck) = (testbed.redis().await, HashSet::new());
        for scene in &self.wave.scenes {
            stuck.extend(redis.stick(scene).await);
        }
        testbed.thaw(Role::Relay);
        self.landed(&stuck).await;
        for scene in self.wave.scenes.iter().filter(|scene| scene.cancel) {
            let order =
                format!("SELECT CAST(request_id AS CHAR) AS line FROM orders WHERE sale_id = '{}' LIMIT 1", scene.sale);
            if let Some(order) = testbed.tables.lines(&order).await.first() {
                testbed.deployment.must_call(&["order", "cancel", order, "--reason", "never paid"]).await;
            }
        }
        match self.wave.held {
            Held::NoReader => {}
            Held::Relay => testbed.freeze(Role::Relay).await,
            Held::Consumer => testbed.part_consumer(true),
        }
        self.buy(4).await;
        match self.wave.held {
            Held::NoReader => self.landed(&stuck).await,
            Held::Relay => {}
            Held::Consumer => {
                eventually("all of it in the broker", async || redis.waiting().await == 0).await;
            }
        }
        copies
    }

    /// Step 5. P5 stands still, so that what the strike leaves is what the judge sees.
    async fn apply_faults(&self, early: &BTreeMap<String, Copy>, late: &BTreeMap<String, Copy>) -> AppliedFaults {
        let testbed = self.testbed;
        dump_stores(&testbed.urls(), &self.dir.join("before")).await;
        let mut struck = AppliedFaults { sales: BTreeMap::new(), wide: self.wave.wide.clone(), damage: None };
        let mut redis = testbed.redis().await;
        for scene in &self.wave.scenes {
            let (copies, name) = if scene.early { (early, "early") } else { (late, "late") };
            let copy = &copies[&scene.sale];
            for fault in &scene.faults {
                let hit = if fault.on_redis() {
                    redis.strike(scene, *fault, copy).await
                } else {
                    testbed.tables.strike(scene, *fault, name).await
                };
                struck.sales.entry(scene.sale.clone()).or_default().push((*fault, hit > 0));
            }
        }
        let is_early = self.wave.scenes.iter().any(|scene| scene.early);
        for wide in &self.wave.wide {
            match wide.damaged() {
                Some(server) => struck.damage = Some(self.damage(server).await),
                None => self.strike_wide(*wide, if is_early { "early" } else { "late" }).await,
            }
        }
        let mut redis = testbed.redis().await;
        redis.forget_scripts().await;
        dump_stores(&testbed.urls(), &self.dir.join("strike")).await;
        testbed.part_consumer(false);
        testbed.thaw(Role::Relay);
        testbed.thaw(Role::Reconcile);
        struck
    }

    async fn strike_wide(&self, wide: ServerFault, copy: &str) {
        let testbed = self.testbed;
        match wide {
            ServerFault::QueuePurged => testbed.run_in_broker(&purge_orders()).await,
            ServerFault::QueueDeleted => testbed.run_in_broker(&delete_orders()).await,
            ServerFault::RedisEmptied => testbed.redis().await.flush_all().await,
            ServerFault::RedisFileOlder => testbed.restart_redis_on(&self.dir.join(copy)).await,
            ServerFault::DatabaseOlder => {
                testbed.part_database(true);
                testbed.tables.load(copy).await;
                testbed.part_database(false);
            }
            ServerFault::RedisFileDamaged | ServerFault::BrokerFileDamaged | ServerFault::DatabaseFileDamaged => {
                panic!("{} is no wide fault", wide.name())
            }
        }
    }

    async fn damage(&self, server: ServerKind) -> DamageRecord {
        let mut dice = StdRng::seed_from_u64(self.wave.scenes[0].dice);
        self.testbed.damage(server, &self.dir.join("files"), &mut dice).await
    }

    /// The judge's word and the product's, on deployment where nothing moves.
    async fn judged(self, struck: AppliedFaults, rested: bool) -> WaveResult {
        let WaveRun { testbed, wave, crowd, dir, off } = self;
        testbed.freeze(Role::Reconcile).await;
        let (history, unknown) = crowd.close();
        write_lines(&dir.join("history.jsonl"), &history);
        dump(&testbed.urls(), &dir.join("end")).await;
        let judged = judge(testbed, wave, struck, (&dir, off)).await;
        drop(std::fs::remove_dir_all(dir.join("files")));
        let mut sales: BTreeSet<String> = wave.scenes.iter().map(|scene| scene.sale.clone()).collect();
        if judged.damage.is_some() {
            // Sales of before may be back, and a key may have got the name of none.
            sales.extend(testbed.tables.lines("SELECT CAST(sale_id AS CHAR) AS line FROM sales").await);
            sales.extend(testbed.redis().await.sales().await);
        }
        let sales: Vec<&str> = sales.iter().map(String::as_str).collect();
        testbed.tables.clear(&sales).await;
        testbed.redis().await.clear(&sales).await;
        testbed.run_in_broker(&purge_dlq()).await;
        testbed.thaw(Role::Reconcile);
        WaveResult { rested, unknown, ..judged }
    }
}

fn write_lines(file: &Path, lines: &[serde_json::Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, text).expect("written");
}
