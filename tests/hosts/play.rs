//! One fault from beginning to end: a crowd buys, the fault comes and goes, all becomes whole, and the judges read the books.
//!
//! Output: a [`Played`], and the scene's folder. Histories are kept over all scenes of a run, because the books are, too.

use crate::checker::{self, Verdict};
use crate::clients::clock::now_ms;
use crate::clients::{Clients, Totals};
use crate::dump::dump;
use crate::front::FrontWatch;
use crate::measure::{
    Span, accepting_after, landing_after, longest_outage, second_by_second, sold_and_landed_after,
    under_way_with_the_lost, with_under_way,
};
use crate::network::{NUMBERS, Number};
use crate::probes::{Probes, Purchase};
use crate::promised;
use crate::sales;
use crate::sampler::Sampler;
use crate::scenes::{self, Act, Placement, Scene};
use crate::servers::{self, Kind, galera, replicated, roles};
use crate::site::{Books, Recovered, Site};
use crate::time::time_passes;
use crate::traces::{self, Losses, TraceVerdict};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Before a fault, and after its end.
const CALM_MS: u64 = 4_000;
/// How often the books are read again because they moved.
const JUDGED_MAX: usize = 3;

/// What became of a scene.
pub struct Played {
    /// Which.
    pub scene: Scene,
    /// The hosts it was about.
    pub hosts: Vec<Number>,
    /// Who led what when it began.
    pub placed: Placement,
    /// What the crowd saw.
    pub totals: Totals,
    /// The checker's word.
    pub verdict: Verdict,
    /// Whether every line that the processes wrote in this scene and those before is explained, where they write some.
    pub traces: Option<TraceVerdict>,
    /// Why it did not become whole, or the audit's complaint.
    pub unrest: Option<String>,
    /// How it became whole.
    pub recovered: Recovered,
    /// What was done to a file of one of its servers.
    pub damage: Option<String>,
    /// Seconds, see [`Times`].
    pub times: Times,
    /// Accepted, refused, confirmed by the probes in each second, from five before the fault.
    pub line: Vec<[usize; 3]>,
    /// Answers of the probes that were not accepted, with their count.
    pub refusals: std::collections::BTreeMap<String, usize>,
    /// Connections that went dumb, or orders that a promoted replica lacked.
    pub touched: usize,
    /// Behind the balancer: purchases of other shards that were under way to the lost host's api, and had no answer.
    pub under_way: usize,
    /// What the balancer in front of the hosts saw.
    pub front: Vec<Value>,
}

/// Seconds until something was whole: during the fault, then after its end. `None`: not before the next change.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub struct Times {
    /// Shards whose primary is elsewhere; of purchases that an api which is there had.
    pub others: Option<f64>,
    /// Shards whose primary was on the host; all when the fault is about connections.
    pub own: Option<f64>,
    /// Until a purchase of each shard that began after the fault was confirmed.
    pub again: Option<f64>,
    /// Landing: until the last order that landed late.
    pub landing: Option<f64>,
    /// After the end of the fault: the longest time that a shard's buyer met refusals only.
    pub back: Option<f64>,
    /// Landing of what was accepted after the end of the fault.
    pub back_landing: Option<f64>,
}

impl Played {
    /// Whether nothing was lost, all became whole, and in the promised time.
    pub fn is_green(&self) -> bool {
        let explained = self.traces.as_ref().is_none_or(TraceVerdict::is_green);
        explained && self.verdict.is_green() && self.unrest.is_none() && promised::broken(self).is_empty()
    }

    /// How many broken promises of these rules.
    fn broken(&self, rules: &[&str]) -> usize {
        self.verdict.violations.iter().filter(|found| rules.contains(&found.rule)).count()
    }

    /// For the results' file. `crowd` has how often payments were reported in this scene; what they came to, and the states of orders, are
    /// those of all scenes so far, as the books are.
    pub fn record(&self) -> Value {
        let named: Vec<Value> = self
            .verdict
            .violations
            .iter()
            .take(20)
            .map(|found| json!({ "rule": found.rule, "detail": found.detail }))
            .collect();
        json!({
            "scene": self.scene.name, "lasts_s": self.scene.lasts_ms / 1000, "hosts": self.hosts, "placed": self.placed,
            "lost": self.broken(&["C3-lost", "C3-limbo", "C3-torn", "C6"]),
            "doubled": self.broken(&["C2", "C10", "C4"]),
            "oversold": self.broken(&["C1"]),
            "other_violations": self.verdict.violations.len() - self.broken(&["C3-lost", "C3-limbo", "C3-torn", "C6", "C2", "C10", "C4", "C1"]),
            "violations": named, "unrest": self.unrest, "not_as_promised": promised::broken(self), "under_way": self.under_way,
            "front": self.front, "seconds": self.times,
            "damage": self.damage, "whole_after_s": self.recovered.seconds, "by_hand": self.recovered.by_hand, "touched": self.touched, "load_1m": load_1m(),
            "crowd": self.totals, "orders_by_source": self.verdict.figures.orders_by_source,
            "traces": self.traces.as_ref().map(|traces| json!({
                "summary": traces.summary(), "unexplained": traces.complaints(), "unseen": traces.cells.unseen(),
            })),
            "orders_by_state": self.verdict.figures.orders_by_state, "payments": self.verdict.figures.payments,
            "accepted_refused_confirmed_each_s": self.line, "refusals": self.refusals,
        })
    }
}

/// A run of scenes: the site, and the history of all of them.
pub struct Stage {
    /// The hosts.
    pub site: Site,
    dir: PathBuf,
    played: usize,
}

impl Stage {
    /// Starts the site below `dir`.
    pub async fn set(dir: &Path, kind: Kind) -> Self {
        let site = Site::start(&dir.join("site"), kind).await;
        Self { site, dir: dir.to_owned(), played: 0 }
    }

    /// Plays one scene.
    pub async fn play(&mut self, scene: Scene, seed: u64) -> Played {
        self.played += 1;
        let dir = self.dir.join(format!("scene{}", self.played));
        std::fs::create_dir_all(&dir).expect("a scene's folder");
        let sales = sales::create(&self.sale_prefix()).await;
        let placed = scenes::placement().await;
        let hosts = scenes::hosts_of(scene.act, &placed).await;
        eprintln!("hosts: {} begins, hosts {hosts:?}, {placed:?}", scene.name);
        let clients = Clients::start(sales::load(sales, seed), &dir.join("own.jsonl"));
        let sampler = Sampler::start(&galera::url(witness(&hosts)), &dir.join("samples.jsonl"));
        let (probes, front) = (Probes::start(&format!("{}-probe", self.sale_prefix())), FrontWatch::start());
        time_passes(CALM_MS).await;

        let own = match scene.act {
            Act::Silence(_) => (0..roles::SHARDS).collect(),
            Act::One(..) | Act::Two(_) | Act::LosesCommits => servers::shards_on(&hosts).await,
        };
        probes.leave_out(&hosts);
        let touched = scenes::begin(&self.site, scene.act, &hosts, seed).await;
        let fault_ms = now_ms();
        time_passes(scene.lasts_ms).await;
        let healed_ms = now_ms();
        self.site.restore().await;
        let whole = self.site.whole().await;
        probes.leave_out(&[]);
        time_passes(CALM_MS).await;
        let end_ms = now_ms();
        // At once: each waits for what it has under way, the clients for those who pay late.
        let ((purchases, lines), totals) = tokio::join!(probes.stop(), clients.stop());
        let mut unrest = whole.as_ref().err().map(|lack| format!("not whole: {lack}"));
        let mut recovered = whole.unwrap_or_default();
        let books = self.drained(&mut recovered, &mut unrest).await;
        // A server may have gone once more: a broker that comes back from a minority starts again.
        if let Err(lack) = self.site.whole().await {
            unrest = unrest.or(Some(format!("not whole at the end: {lack}")));
        }
        sampler.stop().await;
        let (verdict, books) = self.judged_at_rest(&dir, &lines, books).await;
        unrest = unrest.or(books.err());
        let (fault, back) = (Span { from_ms: fault_ms, to_ms: healed_ms }, Span { from_ms: healed_ms, to_ms: end_ms });
        let front = front.stop(fault_ms).await;
        let is_under_way = |purchase: &Purchase| under_way_with_the_lost(purchase, fault_ms);
        let under_way = purchases.iter().filter(|purchase| !own.contains(&purchase.shard) && is_under_way(purchase));
        let under_way = under_way.count();
        let times = times(&purchases, &own, [fault, back]);
        Played {
            scene,
            hosts,
            placed,
            totals,
            verdict,
            traces: crate::traces_folder().map(|folder| traces::check(&folder, losses())),
            unrest,
            recovered,
            damage: self.site.undamaged().await,
            times,
            line: second_by_second(&purchases, fault_ms, end_ms),
            refusals: refusals(&purchases),
            touched,
            under_way,
            front,
        }
    }

    /// The books at rest. A server with a damaged file may serve until that file is needed: then a command says so, and what to do.
    async fn drained(&self, recovered: &mut Recovered, unrest: &mut Option<String>) -> Books {
        let books = self.site.drained().await;
        let Err(lack) = &books else { return books };
        let Some(cure) = self.site.cure_if_named(lack).await else { return books };
        recovered.by_hand.push(cure);
        if unrest.is_none() {
            *unrest = self.site.whole().await.err();
        }
        self.site.drained().await
    }

    /// Of the sales of the present scene.
    fn sale_prefix(&self) -> String {
        format!("s{}", self.played)
    }

    /// What a frozen server or a lost packet held up may be admitted now, between the dumps of two servers: then the books are read
    /// again.
    async fn judged_at_rest(&self, dir: &Path, probes: &[Value], mut books: Books) -> (Verdict, Books) {
        let mut verdict = self.judge(dir, probes).await;
        for _ in 0..JUDGED_MAX {
            let after = self.site.drained().await;
            let is_same = after == books;
            books = after;
            if is_same || verdict.is_green() {
                break;
            }
            eprintln!("hosts: the books moved while they were read, they are read again");
            verdict = self.judge_again(dir).await;
        }
        (verdict, books)
    }

    async fn judge(&self, dir: &Path, probes: &[Value]) -> Verdict {
        let own = std::fs::read_to_string(dir.join("own.jsonl")).expect("the crowd's history");
        let all = self.dir.join("history.jsonl");
        let mut history = OpenOptions::new().create(true).append(true).open(&all).expect("the history");
        history.write_all(own.as_bytes()).expect("written");
        for line in probes {
            writeln!(history, "{line}").expect("written");
        }
        drop(history);
        std::fs::copy(all, dir.join("history.jsonl")).expect("copied");
        self.judge_again(dir).await
    }

    /// With the history as it is.
    async fn judge_again(&self, dir: &Path) -> Verdict {
        dump(&servers::dump_urls().await, dir).await;
        checker::check(dir)
    }
}

/// A server that takes over may lack what its predecessor wrote last: Redis what no replica had, and so has not promised; the
/// database, where it is replicated and no cluster, commits.
fn losses() -> Losses {
    Losses { accepts: true, commits: servers::kind() == Kind::Replicas }
}

/// How busy the machine is, by other work too.
fn load_1m() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(f64::NAN)
}

/// A host whose database can be read all the time.
fn witness(hosts: &[Number]) -> Number {
    if servers::kind() == Kind::Replicas {
        return replicated::REPLICA;
    }
    NUMBERS.into_iter().rev().find(|number| !hosts.contains(number)).unwrap_or(3)
}

fn times(purchases: &[Purchase], own: &[u16], [fault, back]: [Span; 2]) -> Times {
    let had_an_api = |purchase: &&Purchase| !under_way_with_the_lost(purchase, fault.from_ms);
    let of_others: Vec<Purchase> = purchases.iter().filter(had_an_api).cloned().collect();
    Times {
        others: accepting_after(&of_others, fault, |shard| !own.contains(&shard)),
        own: accepting_after(&with_under_way(purchases, fault.from_ms), fault, |shard| own.contains(&shard)),
        again: sold_and_landed_after(purchases, fault),
        landing: landing_after(purchases, fault),
        back: longest_outage(purchases, back),
        back_landing: landing_after(purchases, back),
    }
}

fn refusals(purchases: &[Purchase]) -> std::collections::BTreeMap<String, usize> {
    let mut counts = std::collections::BTreeMap::new();
    for purchase in purchases.iter().filter(|purchase| !purchase.accepted) {
        *counts.entry(purchase.answer.clone()).or_default() += 1;
    }
    counts
}
