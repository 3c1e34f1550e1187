//! `latency_bare`: how long a buyer waits for an answer, against what a user would write instead of the product: a plain Actix handler
//! that sends each purchase to Redis as one bare script call. The same crowd at the same rate, an open loop, on the same Redis with the
//! same durability. The rate is fixed, so that a quicker product is not measured under more load.
//!
//! Both take turns: a machine whose speed changes from second to second is the same one for both. A crash leaves what a private
//! environment leaves.

use super::accept_turns::BoughtTurns;
use super::bar::Bar;
use super::baseline::redis_disk::DiskWaits;
use super::baseline::redis_script::BareScript;
use super::environment::Environment;
use super::latency::{count_disk_waits, curve, disk_waits, half, ms, warmed};
use super::plain_process::PlainProcess;
use super::sizes::{Sizes, Spinner};
use super::steady_crowd::{ENOUGH, LIMIT};
use crate::loadgen::{LoadPlan, LoadReport};
use seckill::cli::Failure;
use serde_json::json;

/// The highest ratio of p99 to that of the handler with the bare script.
const BAR: f64 = 0.7;
/// Purchases a second; fewer where this is more than half of the peak.
const PER_S: f64 = 10_000.0;
/// Turns of each.
const TURNS: u32 = 5;

/// What both came to.
struct Compared {
    ours: BoughtTurns,
    /// Why there is none, for people.
    bare: Result<LoadReport, String>,
    /// In the turns of both.
    disk: Option<DiskWaits>,
}

/// p99 to the answer at [`PER_S`] or half of `peak_per_s`, with the api role alone on a private environment.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    peak_per_s: Option<f64>,
    spinner: &Spinner,
) -> Result<Bar, Failure> {
    let rate = half(peak_per_s)?.min(PER_S);
    let script = BareScript::load(environment.settings.redis.url.expose()).await;
    let plain = match &script {
        Ok(_) => PlainProcess::selling(environment)
            .await?
            .ok_or_else(|| "a stack that was there before has no plain handler".to_owned()),
        Err(why) => Err(why.clone()),
    };
    let compared = in_turns(environment, sizes, (rate, plain), spinner).await;
    if let Ok(script) = script {
        script.unlink().await.map_err(Failure::Failed)?;
    }
    Ok(bar(&compared?, rate))
}

async fn in_turns(
    environment: &mut Environment,
    sizes: &Sizes,
    (rate, plain): (f64, Result<PlainProcess, String>),
    spinner: &Spinner,
) -> Result<Compared, Failure> {
    let sale = environment.sale("latency-bare", ENOUGH, LIMIT).await?;
    let each = Sizes { lasting: sizes.lasting / TURNS, ..sizes.clone() };
    count_disk_waits(environment).await?;
    let (mut ours, mut bare) = (None, None);
    for turn in 0..u64::from(TURNS) {
        let crowd = || {
            let plan = warmed(environment, &each, &sale, rate, spinner);
            LoadPlan { first_buyer: turn * plan.buyers, ..plan }
        };
        spinner.say("the entry");
        ours = Some(BoughtTurns::another(ours, environment, crowd()).await?);
        let Ok(plain) = &plain else { continue };
        spinner.say("a bare script behind a plain handler");
        let report = plain.crowd(crowd()).await?;
        bare = Some(match bare.take() {
            Some(before) => LoadReport::and(before, report).map_err(|error| Failure::Failed(error.to_string()))?,
            None => report,
        });
    }
    let disk = disk_waits(environment).await?;
    let none = || Failure::Failed("latency_bare: no turn".to_owned());
    let bare = match plain {
        Ok(_) => Ok(bare.ok_or_else(none)?),
        Err(why) => Err(why),
    };
    Ok(Compared { ours: ours.ok_or_else(none)?, bare, disk })
}

fn bar(compared: &Compared, rate: f64) -> Bar {
    let Compared { ours: BoughtTurns { report, usage }, bare, disk } = compared;
    let at = |report: &LoadReport, quantile| ms(report.latency_us.value_at_quantile(quantile));
    let [p50, p99] = [0.5, 0.99].map(|quantile| at(report, quantile));
    let beside = match bare {
        Ok(bare) => format!(
            "against a plain actix handler that sends each to Redis as one bare script call: {p99:.2} against {:.2} ms (p50 {p50:.2} \
             against {:.2})",
            at(bare, 0.99),
            at(bare, 0.5)
        ),
        Err(why) => format!("{p99:.2} ms (p50 {p50:.2}); no baseline: {why}"),
    };
    let note = format!(
        "p99 to the answer of {rate:.0} purchases/s, one a buyer, from the time each was due, {beside}{}{}{}",
        usage.busy_note(),
        disk.map_or_else(String::new, DiskWaits::note),
        usage.note()
    );
    let bare = bare.as_ref().ok();
    let more = json!({
        "wanted_per_s": rate, "sent_per_s": report.requests_per_s(), "requests": report.requests, "accepted": report.accepted,
        "answers": report.by_status, "p50_ms": p50, "p99_ms": p99, "curve": curve(&report.latency_us), "cpu": usage.json(),
        "disk_waits": disk, "bare_sent_per_s": bare.map(LoadReport::requests_per_s), "bare_accepted": bare.map(|bare| bare.accepted),
        "bare_p50_ms": bare.map(|bare| at(bare, 0.5)), "bare_curve": bare.map(|bare| curve(&bare.latency_us)),
    });
    let p99_of_bare = bare.map(|bare| at(bare, 0.99));
    Bar::of("latency_bare", p99, "ms").cost_against(p99_of_bare, BAR).note(note).more(more)
}
