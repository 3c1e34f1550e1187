//! A wave from its first buyer to the judge's word.

use super::blow::{Blow, Wide};
use super::plan::{Held, Scene, Wave};
use super::redis::Copy;
use super::rest::at_rest;
use super::shop::Shop;
use super::stage::Stage;
use super::verdict::{Judged, judge};
use crate::dump::{dump, dump_stores};
use crate::nemesis::{delete_orders, purge_dlq, purge_orders};
use crate::time::{eventually, pause};
use futures::StreamExt;
use seckill::faults::Mechanism;
use seckill::roles::Role;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Sales that are created at once.
const AT_ONCE: usize = 8;

/// Records are forgotten this long after they were settled, with room for some rounds of P5.
const TRIMMED_MAX: Duration = Duration::from_secs(12);

/// What struck.
pub struct Struck {
    /// By sale: the blows, and whether each of them hit anything.
    pub sales: BTreeMap<String, Vec<(Blow, bool)>>,
    /// Whole servers.
    pub wide: Vec<Wide>,
}

/// A wave on its stage.
struct Play<'a> {
    stage: &'a Stage,
    wave: &'a Wave,
    shop: Shop,
    dir: PathBuf,
    off: Option<Mechanism>,
}

/// Plays a wave and has it judged. `off`: an equation that the product leaves out.
pub async fn play(stage: &Stage, wave: &Wave, off: Option<Mechanism>) -> Judged {
    let dir = stage.ground.dir().join(format!("wave-{}", wave.number));
    for part in ["look", "before", "strike", "end"] {
        std::fs::create_dir_all(dir.join(part)).expect("a folder");
    }
    let api = stage.ground.direct_api_urls().remove(0);
    let play = Play { stage, wave, shop: Shop::new(api, stage.ground.secret()), dir, off };
    play.run().await
}

impl Play<'_> {
    async fn run(self) -> Judged {
        let scenes = &self.wave.scenes;
        let create = async |scene: &Scene| self.stage.create(&scene.sale, scene.stock, scene.limit).await;
        futures::stream::iter(scenes).map(create).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
        let (early, untrimmed) = self.early_days().await;
        let late = self.busy_days().await;
        let struck = self.misfortune(&early, &late).await;
        // The fence is passed by the first of them. Operators work on: what is granted now meets the repairs.
        self.buy(5).await;
        for scene in scenes.iter().filter(|scene| scene.late_top_up > 0) {
            self.stage.try_top_up(&scene.sale, scene.late_top_up).await;
        }
        let mut rested = at_rest(self.stage, &self.dir.join("look")).await;
        for scene in scenes.iter().filter(|scene| scene.reclaim) {
            self.stage.try_reclaim(&scene.sale).await;
        }
        self.buy(6).await;
        rested &= at_rest(self.stage, &self.dir.join("look")).await;
        Judged { untrimmed, ..self.judged(struck, rested).await }
    }

    /// Buyers of a step.
    async fn buy(&self, step: usize) {
        self.shop.open(self.wave.scenes.iter().map(|scene| (scene, scene.buyers[step]))).await;
    }

    /// Everything told so far is decided, but so many requests of each sale.
    async fn landed(&self, stuck: &BTreeMap<&str, usize>) {
        let wanted: usize = self
            .wave
            .scenes
            .iter()
            .map(|scene| self.shop.accepted(&scene.sale).len() - stuck.get(scene.sale.as_str()).copied().unwrap_or(0))
            .sum();
        let count = "SELECT CAST(COUNT(*) AS CHAR) AS line FROM request_outcome";
        eventually("all that can land has landed", async || {
            self.stage.tables.lines(count).await[0].parse::<usize>().expect("a number") >= wanted
        })
        .await;
    }

    /// Steps 1: much is sold and settled before anything else happens.
    async fn early_days(&self) -> (BTreeMap<String, Copy>, Vec<String>) {
        self.buy(0).await;
        self.landed(&BTreeMap::new()).await;
        let copies = self.copies("early").await;
        self.buy(1).await;
        self.landed(&BTreeMap::new()).await;
        (copies, self.trimmed().await)
    }

    /// Waits until P5 has forgotten what was settled; the sales in which it does not.
    async fn trimmed(&self) -> Vec<String> {
        let (mut hands, begun) = (self.stage.hands().await, Instant::now());
        loop {
            let mut kept = Vec::new();
            for scene in self.wave.scenes.iter().filter(|scene| scene.aged) {
                if hands.remembered(&scene.sale).await > 0 {
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
        let mut hands = self.stage.hands().await;
        let mut copies = BTreeMap::new();
        for scene in &self.wave.scenes {
            copies.insert(scene.sale.clone(), hands.copy(&scene.sale, name).await);
        }
        self.stage.tables.copy(name).await;
        self.stage.copy_redis_to(&self.dir.join(name));
        copies
    }

    /// Steps 2 to 4: copies, grants and cancellations, some requests stuck, some on their way.
    async fn busy_days(&self) -> BTreeMap<String, Copy> {
        let stage = self.stage;
        stage.freeze(Role::Reconcile).await;
        stage.freeze(Role::Relay).await;
        self.buy(2).await;
        let copies = self.copies("late").await;
        for scene in self.wave.scenes.iter().filter(|scene| scene.top_up > 0) {
            stage.top_up(&scene.sale, scene.top_up).await;
        }
        self.buy(3).await;
        let (mut hands, mut stuck) = (stage.hands().await, BTreeMap::new());
        for scene in &self.wave.scenes {
            stuck.insert(scene.sale.as_str(), hands.stick(scene).await);
        }
        stage.thaw(Role::Relay);
        self.landed(&stuck).await;
        for scene in self.wave.scenes.iter().filter(|scene| scene.cancel) {
            let order =
                format!("SELECT CAST(request_id AS CHAR) AS line FROM orders WHERE sale_id = '{}' LIMIT 1", scene.sale);
            if let Some(order) = stage.tables.lines(&order).await.first() {
                stage.ground.must_call(&["order", "cancel", order, "--reason", "never paid"]).await;
            }
        }
        match self.wave.held {
            Held::Nobody => {}
            Held::Relay => stage.freeze(Role::Relay).await,
            Held::Consumer => stage.part_consumer(true),
        }
        self.buy(4).await;
        match self.wave.held {
            Held::Nobody => self.landed(&stuck).await,
            Held::Relay => {}
            Held::Consumer => {
                eventually("all of it in the broker", async || hands.waiting().await == 0).await;
            }
        }
        copies
    }

    /// Step 5. P5 stands still, so that what the strike leaves is what the judge sees.
    async fn misfortune(&self, early: &BTreeMap<String, Copy>, late: &BTreeMap<String, Copy>) -> Struck {
        let stage = self.stage;
        dump_stores(&stage.urls(), &self.dir.join("before")).await;
        let mut struck = Struck { sales: BTreeMap::new(), wide: self.wave.wide.clone() };
        let mut hands = stage.hands().await;
        for scene in &self.wave.scenes {
            let (copies, name) = if scene.early { (early, "early") } else { (late, "late") };
            let copy = &copies[&scene.sale];
            for blow in &scene.blows {
                let hit = if blow.on_redis() {
                    hands.strike(scene, *blow, copy).await
                } else {
                    stage.tables.strike(scene, *blow, name).await
                };
                struck.sales.entry(scene.sale.clone()).or_default().push((*blow, hit > 0));
            }
        }
        let is_early = self.wave.scenes.iter().any(|scene| scene.early);
        for wide in &self.wave.wide {
            self.strike_wide(*wide, if is_early { "early" } else { "late" }).await;
        }
        let mut hands = stage.hands().await;
        hands.forget_scripts().await;
        dump_stores(&stage.urls(), &self.dir.join("strike")).await;
        stage.part_consumer(false);
        stage.thaw(Role::Relay);
        stage.thaw(Role::Reconcile);
        struck
    }

    async fn strike_wide(&self, wide: Wide, copy: &str) {
        let stage = self.stage;
        match wide {
            Wide::QueuePurged => stage.tell_broker(&purge_orders()).await,
            Wide::QueueDeleted => stage.tell_broker(&delete_orders()).await,
            Wide::RedisEmptied => stage.hands().await.flush_all().await,
            Wide::RedisFileOlder => stage.restart_redis_on(&self.dir.join(copy)).await,
            Wide::DatabaseOlder => {
                stage.part_database(true);
                stage.tables.load(copy).await;
                stage.part_database(false);
            }
        }
    }

    /// The judge's word and the product's, on ground where nobody moves.
    async fn judged(self, struck: Struck, rested: bool) -> Judged {
        let Play { stage, wave, shop, dir, off } = self;
        stage.freeze(Role::Reconcile).await;
        let (history, unknown) = shop.close();
        write_lines(&dir.join("history.jsonl"), &history);
        dump(&stage.urls(), &dir.join("end")).await;
        let judged = judge(stage, wave, struck, (&dir, off)).await;
        let sales: Vec<&str> = wave.scenes.iter().map(|scene| scene.sale.as_str()).collect();
        stage.tables.clear(&sales).await;
        stage.hands().await.clear(&sales).await;
        stage.tell_broker(&purge_dlq()).await;
        stage.thaw(Role::Reconcile);
        Judged { rested, unknown, ..judged }
    }
}

fn write_lines(file: &Path, lines: &[serde_json::Value]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(file, text).expect("written");
}
