//! `accept`, `cost_api`, `cost_redis`, `cost_redis_set`, `cost_redis_repeats`: a crowd that buys as fast as it is answered, from the
//! api role alone. Each buyer buys once, in a sale that gives each buyer one unit; beside it the same with double clicks.
//!
//! All that is compared takes turns (`accept_turns`). A crash leaves what a private environment leaves.

use super::accept_turns::{BareTurns, BareUse, BoughtTurns, REPEAT_PERCENT, Turns, in_turns};
use super::bar::Bar;
use super::cost::us_each;
use super::environment::Environment;
use super::latency;
use super::plain_process::PlainUsage;
use super::scenarios::accepted_per_s;
use super::sizes::{Sizes, Spinner};
use seckill::cli::Failure;
use serde_json::json;

/// The least ratio to the plain handler's rate.
const BAR_ACCEPT: f64 = 0.6;
/// The highest ratio of the api's processor time for a purchase to the plain handler's for an answer.
const BAR_COST_API: f64 = 1.5;
/// The highest ratio of Redis' processor time for a purchase to that for a bare purchase script.
const BAR_COST_REDIS: f64 = 0.45;
/// The highest ratio of Redis' processor time for a purchase to that for a plain `SET`.
const BAR_COST_REDIS_SET: f64 = 1.0;
/// The highest ratio of Redis' processor time for a purchase with double clicks to that without.
const BAR_COST_REDIS_REPEATS: f64 = 1.1;

/// Accepted purchases a second through HTTP, JWT and the script, and what one costs the api and Redis.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let turns = in_turns(environment, sizes, spinner).await?;
    Ok([vec![rate(&turns, sizes, environment.is_api_alone())], costs(&turns)].concat())
}

fn rate(turns: &Turns, sizes: &Sizes, alone: bool) -> Bar {
    let BoughtTurns { report, usage } = &turns.crowd;
    let latency = report.latency();
    let mut note = format!("{} connections, p99 {:.1} ms", sizes.crowd_connections(), latency::ms(latency.p99_us));
    note.push_str(if alone { ", api role alone" } else { ", all roles run beside it" });
    if let Err(why) = &turns.bare {
        note.push_str(&format!("; no baseline: {why}"));
    }
    note.push_str(&usage.note());
    let bare = turns.bare.as_ref().ok();
    let more = json!({
        "requests": report.requests, "accepted": report.accepted, "answers": report.by_status, "latency": latency,
        "curve": latency::curve(&report.latency_us), "cpu": usage.json(),
        "bare_script_per_s": bare.map(|bare| bare.script.per_s()), "bare_set_per_s": bare.map(|bare| bare.set.per_s()),
    });
    let rate = Bar::rate("accept", accepted_per_s(report));
    rate.against(turns.plain.map(PlainUsage::per_s), BAR_ACCEPT).note(note).more(more)
}

fn costs(turns: &Turns) -> Vec<Bar> {
    let (bare, crowd, repeats) = (turns.bare.as_ref().ok(), &turns.crowd, &turns.repeats);
    let bare_us = |of: fn(&BareTurns) -> &BareUse| bare.and_then(|bare| of(bare).redis_us());
    let cost = |name, us: Option<f64>, baseline, most, note: String| {
        us.map(|us| Bar::of(name, us, "µs").cost_against(baseline, most).note(note))
    };
    let disturbed = crowd.usage.disturbed();
    let by_redis = "processor time of Redis for an accepted purchase (nothing is relayed), against that for";
    let under = "under redis-benchmark -P 1, as many connections";
    let clicked = format!(
        "the same beside {REPEAT_PERCENT} % of double clicks, against that without; {} of {} requests were accepted{}",
        repeats.report.accepted,
        repeats.report.requests,
        repeats.usage.disturbed()
    );
    let more = json!({
        "requests": repeats.report.requests, "accepted": repeats.report.accepted, "answers": repeats.report.by_status,
        "accepted_per_s": accepted_per_s(&repeats.report), "cpu": repeats.usage.json(),
    });
    let redis_us = crowd.us("redis");
    let bars = [
        cost(
            "cost_api",
            crowd.us("api"),
            turns.plain.and_then(PlainUsage::us),
            BAR_COST_API,
            format!(
                "processor time of the api for a purchase, against that of a plain actix handler for an answer{disturbed}"
            ),
        ),
        cost(
            "cost_redis",
            redis_us,
            bare_us(|bare| &bare.script),
            BAR_COST_REDIS,
            format!("{by_redis} a bare script {under}{disturbed}"),
        ),
        cost(
            "cost_redis_set",
            redis_us,
            bare_us(|bare| &bare.set),
            BAR_COST_REDIS_SET,
            format!("{by_redis} a plain SET {under}{disturbed}"),
        ),
        cost("cost_redis_repeats", repeats.us("redis"), redis_us, BAR_COST_REDIS_REPEATS, clicked)
            .map(|bar| bar.more(more)),
    ];
    bars.into_iter().flatten().collect()
}

impl BoughtTurns {
    /// Processor time of a process for an accepted purchase, µs; `None` when it was not measured.
    pub(super) fn us(&self, process: &str) -> Option<f64> {
        us_each(&self.usage, process, self.report.accepted)
    }
}
