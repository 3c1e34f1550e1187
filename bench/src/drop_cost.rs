//! `cost_drop_redis`, `cost_drop_api`, `cost_drop_sizes`, `cost_plain_redis`, `cost_plain_api`: what drops cost. A crowd buys from a plain
//! sale, from a sale of a drop of two, and from the fourteen sales of a drop in turns, each buyer one unit, from the api role alone; and
//! with `--against` from a plain sale of another build, the one before drops.
//!
//! What is compared takes turns on the same servers; two builds have servers each. A crash leaves what a private environment leaves.

use super::accept_turns::BoughtTurns;
use super::bar::Bar;
use super::cost::us_of;
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{self, ENOUGH, LIMIT, crowd};
use crate::loadgen::{self, LoadPlan};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use serde_json::json;

/// Turns of each.
const TURNS: u32 = 5;
/// Sizes of a shoe.
const MANY: usize = 14;
/// The highest ratio of a purchase in a plain sale to one of the build before drops.
const BAR_PLAIN: f64 = 1.03;
/// The highest ratio of a purchase in a sale of a drop to one in a plain sale.
const BAR_DROP: f64 = 1.15;
/// The same in a drop of many sales, of Redis' processor time.
const BAR_MANY: f64 = 2.0;

/// Processor time of an accepted purchase, µs; `None` where it was not measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct PurchaseCost {
    api_us: Option<f64>,
    redis_us: Option<f64>,
}

impl PurchaseCost {
    /// Of a plain sale.
    pub async fn of_plain(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Self, Failure> {
        environment.api_only().await?;
        let sale = environment.sale("plain", ENOUGH, LIMIT).await?;
        let ready = loadgen::prepare(crowd(environment, sizes, &sale, spinner)).await?;
        let watch = CpuMeter::start(environment);
        let (report, usage) = (ready.run().await?, watch.end());
        Ok(Self::of(&BoughtTurns { report, usage }))
    }

    fn of(bought: &BoughtTurns) -> Self {
        Self { api_us: bought.us("api"), redis_us: bought.us("redis") }
    }
}

/// What the crowds of the fourteen sales came to, all turns together.
#[derive(Debug, Clone, Copy, Default)]
struct Many {
    accepted: u64,
    redis_s: f64,
}

/// The three kinds of sales on these servers, where only the api runs.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    pair: Option<(PurchaseCost, PurchaseCost)>,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let plain = environment.sale("plain", ENOUGH, LIMIT).await?;
    let of_two = environment.drop_sales("two", 2, ENOUGH, LIMIT).await?;
    let of_many = environment.drop_sales("many", MANY, ENOUGH, LIMIT).await?;
    let each = Sizes { connections: sizes.crowd_connections(), lasting: sizes.lasting / TURNS, ..sizes.clone() };
    let (mut in_plain, mut in_two, mut in_many) = (None, None, Many::default());
    for turn in 0..u64::from(TURNS) {
        let first_buyer = turn * each.buyers();
        let tokens = steady_crowd::tokens(environment, first_buyer..first_buyer + each.buyers()).await?;
        let plan = |sale: &SaleId| LoadPlan {
            first_buyer,
            access: Some(tokens.clone()),
            ..crowd(environment, &each, sale, spinner)
        };
        spinner.say("plain sale");
        in_plain = Some(BoughtTurns::another(in_plain, environment, plan(&plain)).await?);
        spinner.say("sale of a drop");
        in_two = Some(BoughtTurns::another(in_two, environment, plan(&of_two[0])).await?);
        spinner.say("drop of many sales");
        in_many = in_many.another(environment, of_many.iter().map(plan).collect()).await?;
    }
    let none = || Failure::Failed("cost_drop: no turn".to_owned());
    let (in_plain, in_two) = in_plain.zip(in_two).ok_or_else(none)?;
    Ok(bars(&in_plain, &in_two, in_many, pair))
}

impl Many {
    /// One more turn of all sales at once, with as many buyers and connections together as another turn has.
    async fn another(self, environment: &Environment, plans: Vec<LoadPlan>) -> Result<Self, Failure> {
        environment.go_on()?;
        let count = plans.len().max(1) as u64;
        let mut ready = Vec::new();
        for (at, plan) in (0..).zip(plans) {
            let buyers = plan.buyers / count;
            let first_buyer = plan.first_buyer + at * buyers;
            let connections = (plan.connections / u32::try_from(count).unwrap_or(1)).max(1);
            // Tokens that were signed for all buyers stand for the first ones of a plan: each has its own signed.
            let access = None;
            ready.push(loadgen::prepare(LoadPlan { buyers, first_buyer, connections, access, ..plan }).await?);
        }
        let watch = CpuMeter::start(environment);
        let reports = futures::future::try_join_all(ready.into_iter().map(loadgen::PreparedRun::run)).await?;
        let usage = watch.end();
        Ok(Self {
            accepted: self.accepted + reports.iter().map(|report| report.accepted).sum::<u64>(),
            redis_s: self.redis_s + usage.seconds.get("redis").copied().unwrap_or_default(),
        })
    }

    fn redis_us(self) -> Option<f64> {
        us_of(self.redis_s, self.accepted).filter(|us| *us > 0.0)
    }
}

fn bars(
    in_plain: &BoughtTurns,
    in_two: &BoughtTurns,
    in_many: Many,
    pair: Option<(PurchaseCost, PurchaseCost)>,
) -> Vec<Bar> {
    let (plain, two) = (PurchaseCost::of(in_plain), PurchaseCost::of(in_two));
    let cost = |name, us: Option<f64>, baseline, most, note: &str| {
        us.map(|us| Bar::of(name, us, "µs").cost_against(baseline, most).note(note.to_owned()))
    };
    let of_drop = "processor time for an accepted purchase in one of the two sales of a drop, against a plain sale";
    let of_many = "the same for a drop of fourteen sales, bought from all at once, against a plain sale";
    let of_build =
        "processor time for an accepted purchase in a plain sale, against the other build, each on new servers";
    let more = json!({
        "plain": in_plain.report.accepted, "two": in_two.report.accepted, "many": in_many.accepted,
        "cpu_plain": in_plain.usage.json(), "cpu_two": in_two.usage.json(),
    });
    let mut bars = vec![
        cost("cost_drop_redis", two.redis_us, plain.redis_us, BAR_DROP, &format!("Redis' {of_drop}"))
            .map(|bar| bar.more(more)),
        cost("cost_drop_api", two.api_us, plain.api_us, BAR_DROP, &format!("the api's {of_drop}")),
        cost("cost_drop_sizes", in_many.redis_us(), plain.redis_us, BAR_MANY, &format!("Redis' time, {of_many}")),
    ];
    if let Some((ours, other)) = pair {
        let redis = cost("cost_plain_redis", ours.redis_us, other.redis_us, BAR_PLAIN, &format!("Redis' {of_build}"));
        let api = cost("cost_plain_api", ours.api_us, other.api_us, BAR_PLAIN, &format!("the api's {of_build}"));
        bars.extend([redis, api]);
    }
    bars.into_iter().flatten().collect()
}
