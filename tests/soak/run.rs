//! The run: a round a minute with sales of its own, one fault in it, one audit, and a keeper that puts the round before away.
//!
//! Sales are made before the minute's fault begins and after the last one is over: an operator waits with that, too.

use crate::clients::final_status::SETTLE_MAX_MS;
use crate::clients::{Backend, Clients, Load, SaleSpec};
use crate::deployment::{Deployment, Options};
use crate::keeper::{ClosedRound, Keeper, Kept};
use crate::kinds::Kinds;
use crate::measured::{Gauge, Measured, rows};
use crate::nemesis::{Counts, Record, Striker};
use crate::probe::{self, Probe};
use crate::shop::{SOON, Shop};
use crate::time::time_passes;
use seckill::roles::Role;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// `admin.token`.
const ADMIN_TOKEN: &str = "test-admin-token-of-a-soak-with-32-bytes-or-more";
/// Share of what the machine bears, and how long more than that is tried.
const SHARE_PERCENT: u64 = 30;
const PEAK_TRIED_PER_S: u64 = 3_000;
const PEAK_S: u64 = 10;
/// All that was accepted then has landed, and every receiver has its events, within this time.
const PEAK_DRAIN: Duration = Duration::from_secs(300);
/// The sales of the measurement.
const PEAK: &str = "peak";
const ROUND: Duration = Duration::from_secs(60);
/// The minute's fault begins somewhere in here, its audit at the end.
const FAULT_AT_MS: std::ops::RangeInclusive<u64> = 12_000..=25_000;
const AUDIT_AT: Duration = Duration::from_secs(50);
const PAY_WITHIN_S: u32 = 5;
const DRAIN: Duration = Duration::from_secs(120);
/// Records leave Redis soon, so that a sale can be archived within the run, and deliveries the database.
const SHORT_MEMORY: [&str; 3] =
    ["p1_entry.token_ttl_s=30", "p5_reconcile.ledger_retention_s=45", "webhook_delivery.retention_s=45"];
/// A leak may be true for a while.
const LEAK: &str = "LEAK";

/// What a soak is to be.
pub struct Orders {
    /// It decides faults and buyers.
    pub seed: u64,
    /// Its length.
    pub minutes: u64,
    /// Purchases begun per second; measured when it is not given.
    pub rate_per_s: Option<u64>,
}

/// An audit: its findings, or none when there was no answer.
pub struct Audited {
    /// Which minute.
    pub minute: u64,
    /// Codes of the findings.
    pub findings: Option<Vec<String>>,
}

/// A soak that is over.
pub struct Finished {
    pub seed: u64,
    pub minutes: u64,
    pub rate_per_s: u64,
    /// Accepted per second when it was measured.
    pub peak_per_s: Option<u64>,
    pub deployment: Deployment,
    pub measured: Measured,
    pub faults: Vec<Record>,
    pub audits: Vec<Audited>,
    pub kept: Vec<Kept>,
    /// Rows at the end.
    pub rows: BTreeMap<String, u64>,
    pub unrest: Option<String>,
}

fn round_sales(round: &str, rate_per_s: u64) -> [SaleSpec; 3] {
    // A third of the crowd comes to each; the last two have too little.
    let third = i64::try_from(rate_per_s * ROUND.as_secs() / 3).expect("a rate");
    let sale = |name: &str, stock: i64, limit| SaleSpec {
        id: format!("{round}-{name}"),
        stock: stock.max(10),
        limit,
        pay_within_s: None,
    };
    [
        sale("any", third * 10, None),
        sale("one-each", third / 2, Some(1)),
        SaleSpec { pay_within_s: Some(PAY_WITHIN_S), ..sale("pay-soon", third / 2, None) },
    ]
}

struct Soak<'a> {
    orders: &'a Orders,
    deployment: Arc<Deployment>,
}

impl Soak<'_> {
    fn crowd(&self, name: &str, sales: Vec<SaleSpec>, rate_per_s: u64, seed: u64) -> Clients {
        let backend = Backend { admins: self.deployment.admin_urls(), token: ADMIN_TOKEN.to_owned() };
        let load = Load {
            apis: self.deployment.api_urls(),
            sales,
            users: 5_000,
            rate_per_s: rate_per_s as f64,
            seed,
            secret: self.deployment.secret(),
            backend: Some(backend),
            settle_max_ms: SETTLE_MAX_MS,
        };
        Clients::start(load, &self.history(name))
    }

    fn history(&self, name: &str) -> std::path::PathBuf {
        self.deployment.dir().join(format!("history-{name}.jsonl"))
    }

    /// Purchases a second that this machine bears to their last event: more are tried for a while, and the time counts until all that was
    /// accepted has landed, was paid or ended unpaid, and every receiver has its events.
    async fn peak(&self, keeper: &Arc<Keeper>) -> (u64, Kept) {
        let sales = round_sales(PEAK, PEAK_TRIED_PER_S);
        for sale in &sales {
            self.deployment.create_sale(sale).await;
        }
        let round =
            ClosedRound { sales: sales.iter().map(|sale| sale.id.clone()).collect(), history: self.history(PEAK) };
        let begun = Instant::now();
        let crowd = self.crowd(PEAK, sales.into(), PEAK_TRIED_PER_S, self.orders.seed);
        time_passes(PEAK_S * 1_000).await;
        let accepted = crowd.stop().await.accepted;
        self.deployment.drained(PEAK_DRAIN).await.unwrap_or_else(|open| panic!("the peak does not land: {open}"));
        self.deployment.delivered(PEAK_DRAIN).await.unwrap_or_else(|open| panic!("webhooks of the peak wait: {open}"));
        let per_s = accepted / begun.elapsed().as_secs().max(1);
        (per_s, keeper.keep(round).await)
    }

    async fn audit(&self, minute: u64) -> Audited {
        let answer = self.deployment.try_call(&["audit", "--json"]).await;
        let audit: Option<Value> = answer.and_then(|(_, stdout, _)| serde_json::from_str(&stdout).ok());
        let findings = |audit: Value| -> Vec<String> {
            let sales = audit["sales"].as_array().cloned().unwrap_or_default();
            let of_sale = |sale: &Value| -> Vec<String> {
                let found = sale["findings"].as_array().cloned().unwrap_or_default();
                found
                    .iter()
                    .map(|found| format!("{} of {}", found["kind"].as_str().unwrap_or("?"), sale["sale_id"]))
                    .collect()
            };
            sales.iter().flat_map(of_sale).collect()
        };
        Audited { minute, findings: audit.map(findings) }
    }
}

/// Runs it.
pub async fn run(orders: &Orders) -> Finished {
    let shop = Shop::open(false).await;
    let mut options = Options { webhook: Some(shop.url()), ..Options::default() };
    options.set.extend(SOON.map(str::to_owned));
    options.set.push(format!("admin.token={ADMIN_TOKEN}"));
    options.set.extend(SHORT_MEMORY.map(str::to_owned));
    let deployment = Arc::new(Deployment::start("soak", options).await);
    let soak = Soak { orders, deployment: deployment.clone() };
    let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(5)).build().expect("a client");
    let keeper = Arc::new(Keeper { deployment: deployment.clone(), token: ADMIN_TOKEN, http });
    let measured = if orders.rate_per_s.is_none() { Some(soak.peak(&keeper).await) } else { None };
    let (peak_per_s, kept_peak) = measured.unzip();
    let rate_per_s = orders.rate_per_s.unwrap_or_else(|| (peak_per_s.unwrap_or(0) * SHARE_PERCENT / 100).max(1));
    eprintln!("soak: seed {}, {} min, {rate_per_s} purchases/s", orders.seed, orders.minutes);
    let probe_sale = SaleSpec { id: probe::SALE.to_owned(), stock: 1_000_000, limit: None, pay_within_s: None };
    deployment.create_sale(&probe_sale).await;
    let gauge = Gauge::start(&deployment, (rate_per_s * ROUND.as_secs()) as f64);
    let (mut faults, mut audits) = (Vec::new(), Vec::new());
    let mut kept = rounds(&soak, &keeper, rate_per_s, (&mut faults, &mut audits)).await;
    kept.extend(kept_peak);
    let measured = gauge.stop().await;
    let mut unrest = deployment.try_heal().await.err();
    unrest = unrest.or(deployment.drained(DRAIN).await.map_err(|open| format!("not drained: {open}")).err());
    unrest = unrest.or(deployment.delivered(DRAIN).await.map_err(|open| format!("webhooks wait: {open}")).err());
    let rows = rows(&deployment.urls().mysql).await.unwrap_or_default();
    drop((soak, keeper));
    let Ok(deployment) = Arc::try_unwrap(deployment) else { panic!("something is under way") };
    let Orders { seed, minutes, .. } = *orders;
    Finished { seed, minutes, rate_per_s, peak_per_s, deployment, measured, faults, audits, kept, rows, unrest }
}

async fn rounds(
    soak: &Soak<'_>,
    keeper: &Arc<Keeper>,
    rate_per_s: u64,
    (faults, audits): (&mut Vec<Record>, &mut Vec<Audited>),
) -> Vec<Kept> {
    let (orders, deployment) = (soak.orders, &soak.deployment);
    let probe = Arc::new(Probe::new(deployment.direct_api_urls(), deployment.secret()));
    let counts: Counts = Role::ALL.map(|role| (role, deployment.of(role).count()));
    let striker = Striker::new(deployment, &probe, counts);
    let mut kinds = Kinds::new(orders.seed);
    let (mut before, mut keeping) = (None, JoinSet::new());
    for minute in 0..orders.minutes {
        let (begun, seed) = (Instant::now(), orders.seed.wrapping_add(minute));
        drop(deployment.try_heal().await);
        let sales = round_sales(&format!("round-{minute}"), rate_per_s);
        for sale in &sales {
            deployment.create_sale(sale).await;
        }
        let name = minute.to_string();
        let round =
            ClosedRound { sales: sales.iter().map(|sale| sale.id.clone()).collect(), history: soak.history(&name) };
        let crowd = soak.crowd(&name, sales.into(), rate_per_s, seed);
        if let Some((crowd, round)) = before.replace((crowd, round)) {
            keeping.spawn(put_away(keeper.clone(), crowd, round));
        }
        time_passes(kinds.at_ms(FAULT_AT_MS)).await;
        faults.extend(striker.strike(&[kinds.next(minute)], seed).await);
        time_passes(left_ms(begun, AUDIT_AT)).await;
        audits.push(soak.audit(minute).await);
        time_passes(left_ms(begun, ROUND)).await;
    }
    striker.undo().await;
    if let Some((crowd, round)) = before {
        keeping.spawn(put_away(keeper.clone(), crowd, round));
    }
    keeping.join_all().await
}

/// The crowd ends what it has begun, then its sales are put away.
async fn put_away(keeper: Arc<Keeper>, crowd: Clients, round: ClosedRound) -> Kept {
    let totals = crowd.stop().await;
    let mut kept = keeper.keep(round).await;
    if totals.unsettled > 0 {
        kept.wrong.push(format!("{} requests never got a final answer", totals.unsettled));
    }
    kept
}

fn left_ms(begun: Instant, until: Duration) -> u64 {
    u64::try_from(until.saturating_sub(begun.elapsed()).as_millis()).expect("a minute")
}

impl Finished {
    /// Repeats the schedule.
    pub fn command(&self) -> String {
        format!("make soak SEED={} MINUTES={} RATE={}", self.seed, self.minutes, self.rate_per_s)
    }

    /// Everything that is wrong.
    pub fn wrong(&self) -> Vec<String> {
        let of_rounds = self.kept.iter().flat_map(|kept| kept.wrong.clone());
        let flat = crate::report::flatness(self)
            .into_iter()
            .filter_map(|(name, flat)| Some(format!("{name}: {}", flat.wrong?)));
        of_rounds.chain(flat).chain(self.wrong_audits()).chain(self.wrong_rows()).chain(self.unrest.clone()).collect()
    }

    fn wrong_audits(&self) -> Vec<String> {
        let answered: Vec<(&Audited, &Vec<String>)> =
            self.audits.iter().filter_map(|audit| Some((audit, audit.findings.as_ref()?))).collect();
        let reported = answered.iter().flat_map(|(audit, findings)| {
            let minute = audit.minute;
            findings
                .iter()
                .filter(|found| !found.starts_with(LEAK))
                .map(move |found| format!("minute {minute}: {found}"))
        });
        let few = (answered.len() * 2 < self.audits.len())
            .then(|| format!("{} of {} audits got an answer", answered.len(), self.audits.len()));
        reported.chain(few).collect()
    }

    /// What stays has a reason, row by row.
    fn wrong_rows(&self) -> Vec<String> {
        let archived: usize = self.kept.iter().map(|kept| kept.archived).sum();
        let payments: usize = self.kept.iter().map(|kept| kept.payments).sum();
        // The probe's sale is never closed.
        let stays = [("payments", payments), ("archived_sales", archived), ("sales", 1)];
        stays
            .into_iter()
            .map(|(table, wanted)| (table, wanted as u64, self.rows.get(table).copied().unwrap_or(0)))
            .filter(|(_, wanted, rows)| wanted != rows)
            .map(|(table, wanted, rows)| format!("{table} has {rows} rows at the end, {wanted} are explained"))
            .collect()
    }
}

/// The folder of reports.
pub fn reports() -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder").join("chaos")
}
