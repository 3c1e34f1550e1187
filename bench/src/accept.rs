//! `accept`, `cost_api`, `cost_redis`: a crowd that buys as fast as it is answered, from the api role alone.
//!
//! The three that are compared, the crowd, the same crowd at a plain handler, and the bare script, take turns: a machine whose
//! speed changes from second to second is the same one for all of them. Each turn has buyers of its own. A crash leaves what a
//! private environment leaves.

use super::bar::Bar;
use super::baseline::redis_script::BareScript;
use super::cost::{PlainProcess, PlainUsage, us_each, us_of};
use super::cpu::{CpuMeter, CpuUsage};
use super::environment::Environment;
use super::latency;
use super::scenarios::accepted_per_s;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{ENOUGH, crowd};
use crate::loadgen::{self, LoadPlan, LoadReport};
use seckill::cli::Failure;
use serde_json::json;

/// The least ratio to the plain handler's rate.
const BAR_ACCEPT: f64 = 0.6;
/// The highest ratio of the api's processor time for a purchase to the plain handler's for an answer.
const BAR_COST_API: f64 = 1.6;
/// The highest ratio of Redis' processor time for a purchase to that for a bare purchase script.
const BAR_COST_REDIS: f64 = 0.6;
/// Turns of each.
const TURNS: u32 = 5;

/// What the turns of all three came to.
struct Measured {
    crowd: (LoadReport, CpuUsage),
    plain: Option<PlainUsage>,
    /// Why there is none, for people.
    bare: Result<BareTurns, String>,
}

/// The turns of the bare script so far.
struct BareTurns {
    script: BareScript,
    purchases: u64,
    elapsed_s: f64,
    /// Processor time of Redis; `None` when it was not measured.
    redis_s: Option<f64>,
}

/// Accepted purchases a second through HTTP, JWT and the script, and what one costs the api and Redis.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let alone = environment.is_api_alone();
    let Measured { crowd: (report, usage), plain, bare } = in_turns(environment, sizes, spinner).await?;
    let latency = report.latency();
    let mut note = format!("{} connections, p99 {:.1} ms", sizes.crowd_connections(), latency::ms(latency.p99_us));
    note.push_str(if alone { ", api role alone" } else { ", all roles run beside it" });
    if let Err(why) = &bare {
        note.push_str(&format!("; no baseline: {why}"));
    }
    note.push_str(&usage.note());
    let bare = bare.ok();
    let bare_us = bare.as_ref().and_then(BareTurns::redis_us);
    let more = json!({
        "requests": report.requests, "accepted": report.accepted, "answers": report.by_status, "latency": latency,
        "curve": latency::curve(&report.latency_us), "cpu": usage.json(), "bare_script_per_s": bare.map(|bare| bare.per_s()),
    });
    let rate = Bar::rate("accept", accepted_per_s(&report)).against(plain.map(PlainUsage::per_s), BAR_ACCEPT);
    let mut bars = vec![rate.note(note).more(more)];
    let mut cost = |name, process, baseline, most, note: &str| {
        if let Some(us) = us_each(&usage, process, report.accepted) {
            let note = format!("{note}{}", usage.disturbed());
            bars.push(Bar::of(name, us, "µs").cost_against(baseline, most).note(note));
        }
    };
    let note = "processor time of the api for a purchase, against that of a plain actix handler for an answer";
    cost("cost_api", "api", plain.and_then(PlainUsage::us), BAR_COST_API, note);
    let note = "processor time of Redis for a purchase (nothing is relayed), against that for a bare script under redis-benchmark";
    cost("cost_redis", "redis", bare_us, BAR_COST_REDIS, note);
    Ok(bars)
}

async fn in_turns(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Measured, Failure> {
    let sale = environment.sale("accept", ENOUGH, None).await?;
    let plain = PlainProcess::start(environment).await?;
    let mut bare = BareScript::load(environment.settings.redis.url.expose()).await.map(BareTurns::new);
    let each = Sizes {
        connections: sizes.crowd_connections(),
        lasting: sizes.lasting / TURNS,
        buyers: sizes.buyers / u64::from(TURNS),
        baseline_requests: sizes.baseline_requests / u64::from(TURNS),
        ..sizes.clone()
    };
    let (mut crowds, mut refused) = (None, PlainUsage::default());
    for turn in 0..u64::from(TURNS) {
        let plan = || LoadPlan { first_buyer: turn * each.buyers, ..crowd(environment, &each, &sale, spinner) };
        let ready = loadgen::prepare(plan()).await?;
        let watch = CpuMeter::start(environment);
        let (report, usage) = (ready.run().await?, watch.end());
        crowds = Some(match crowds.take() {
            Some((before, used)) => (added(before, report)?, CpuUsage::and(used, usage)),
            None => (report, usage),
        });
        spinner.say("plain handler");
        if let Some(plain) = &plain {
            refused = refused.and(plain.under_crowd(environment, plan()).await?);
        }
        spinner.say("bare script");
        bare = match bare {
            Ok(turns) => turns.another(environment, &each).await,
            Err(why) => Err(why),
        };
    }
    let bare = match bare {
        Ok(turns) => turns.script.unlink().await.map(|()| turns),
        Err(why) => Err(why),
    };
    let crowd = crowds.ok_or_else(|| Failure::Failed("accept: no turn".to_owned()))?;
    Ok(Measured { crowd, plain: plain.map(|_| refused), bare })
}

fn added(before: LoadReport, later: LoadReport) -> Result<LoadReport, Failure> {
    before.and(later).map_err(|error| Failure::Failed(error.to_string()))
}

#[expect(clippy::cast_precision_loss, reason = "figures for people; 53 bits are enough")]
impl BareTurns {
    const fn new(script: BareScript) -> Self {
        Self { script, purchases: 0, elapsed_s: 0.0, redis_s: Some(0.0) }
    }

    async fn another(self, environment: &Environment, each: &Sizes) -> Result<Self, String> {
        let watch = CpuMeter::start(environment);
        let per_s = self.script.purchases(each.connections, each.baseline_requests).await?;
        let usage = watch.end();
        Ok(Self {
            purchases: self.purchases + each.baseline_requests,
            elapsed_s: self.elapsed_s + each.baseline_requests as f64 / per_s,
            redis_s: self.redis_s.zip(usage.seconds.get("redis")).map(|(before, now)| before + now),
            script: self.script,
        })
    }

    fn per_s(&self) -> f64 {
        self.purchases as f64 / self.elapsed_s.max(0.001)
    }

    /// Processor time of Redis for a purchase, µs.
    fn redis_us(&self) -> Option<f64> {
        us_of(self.redis_s?, self.purchases)
    }
}
