//! `waiters`: many buyers hold a long poll while nothing lands, and others go on buying (A13). A poll must not cost the buyers
//! who come after it: their latency is measured without waiters and beside them, on one sale, at one rate.
//!
//! A poll that finds no place to wait is answered at once with `Retry-After`, which the waiters keep. It does not wait, so the
//! environments have places for all, and a run in which more than a few were answered early fails: it measured something else.
//!
//! Then the same where an accepted purchase is one that a replica has (`redis.wait_replicas`): there each status of a queued
//! order waits for the replica, too.

use super::bar::Bar;
use super::cpu::{CpuMeter, CpuUsage, resident_peak_mib};
use super::environment::{Difference, Environment};
use super::latency::{ms, warmed};
use super::request_texts::purchase_in;
use super::sizes::{Sizes, Spinner};
use super::{descriptors, steady_crowd};
use crate::loadgen::access_tokens::AccessTokens;
use crate::loadgen::http::{Connection, ServerAddress};
use crate::loadgen::{self, LoadReport};
use futures::{StreamExt, TryStreamExt, stream};
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::runtime::Stopper;
use seckill::token_issuer::TokenIssuer;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// Purchases a second beside the waiters: low enough for every machine, so that a longer latency is the waiters' doing.
const PER_S: f64 = 500.0;
/// Highest p99 of purchases beside the waiters, as a multiple of that without them.
const RATIO_MAX: f64 = 1.5;
/// Most that Redis may be busy with them, per cent of a core.
const REDIS_PERCENT_MAX: f64 = 5.0;
/// What a waiter asks for, seconds.
const WAIT_S: u64 = 20;
/// Most polls that may be answered early, of a hundred waiters.
const EARLY_PERCENT_MAX: u64 = 3;
/// Longest wait for a connection or an answer: above what a waiter asks for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Purchases of future waiters under way at a time.
const AT_A_TIME: usize = 64;
/// How often it is checked whether all wait.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// The setting of those whose status waits for a replica, too.
const REPLICATED: &str = "redis.wait_replicas=1";
/// The default.
const UNREPLICATED: &str = "redis.wait_replicas=0";

/// What one environment showed.
struct Waited {
    waiters: u64,
    without: LoadReport,
    beside: LoadReport,
    polls: Polls,
    api_peak_mib: Option<f64>,
    cpu: Value,
    /// What Redis was busy with the waiters, per cent of a core.
    redis_percent: f64,
}

/// What the waiters got.
#[derive(Default)]
struct Polls {
    /// After their wait.
    answered: AtomicU64,
    /// At once, because no place to wait was left.
    early: AtomicU64,
    broken: AtomicU64,
    asking: AtomicU64,
}

/// Both bars. `environment` has the api role only.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let mut bars = Vec::new();
    // With room for a purchase that waits beside them.
    let places = format!("http.waiters_max={}", 2 * sizes.waiters.max(1));
    for (name, setting) in [("waiters", UNREPLICATED), ("waiters_replicated", REPLICATED)] {
        spinner.say(setting);
        // An api of their own: what this number of polls takes would be in every later measurement.
        if let Some(other) = environment.another(Difference::Settings(&[setting, &places])).await? {
            let measure = async |other: &mut Environment| one(other, sizes, spinner).await;
            bars.push(of(name, &steady_crowd::measured_on(other, sizes, spinner, measure).await?));
        }
    }
    if bars.is_empty() {
        bars.push(of("waiters", &one(environment, sizes, spinner).await?));
    }
    Ok(bars.into_iter().flatten().collect())
}

/// Redis' share of a core.
fn redis_percent(usage: &CpuUsage) -> f64 {
    let seconds = usage.seconds.get("redis").copied().unwrap_or(0.0);
    if usage.elapsed_s > 0.0 { 100.0 * seconds / usage.elapsed_s } else { 0.0 }
}

/// Whether nearly all of the waiters waited.
fn measured(waiters: u64, early: u64) -> Result<(), Failure> {
    if early * 100 <= waiters * EARLY_PERCENT_MAX {
        return Ok(());
    }
    let problem = format!("{early} polls of {waiters} waiters were answered at once, for want of a place to wait");
    Err(Failure::Failed(format!("waiters: {problem}; nothing was measured, raise http.waiters_max")))
}

/// The purchases beside them, and what they cost Redis where no replica is waited for.
fn of(name: &'static str, waited: &Waited) -> Vec<Bar> {
    let note = format!("Redis was busy with {} long polls for this share of a core", waited.waiters);
    let cost = Bar::of("cost_waiters", waited.redis_percent, "%").at_most(REDIS_PERCENT_MAX).note(note);
    let mut bars = vec![beside(name, waited)];
    bars.extend((name == "waiters").then_some(cost));
    bars
}

fn beside(name: &'static str, waited: &Waited) -> Bar {
    let p99 = |report: &LoadReport| ms(report.latency_us.value_at_quantile(0.99));
    let p50 = |report: &LoadReport| ms(report.latency_us.value_at_quantile(0.5));
    let (without, beside) = (&waited.without, &waited.beside);
    let Polls { answered, early, broken, .. } = &waited.polls;
    let [answered, early, broken] = [answered, early, broken].map(|count| count.load(Relaxed));
    let note = format!(
        "p99 of {PER_S:.0} purchases/s beside {} long polls, against p99 without them: {:.2} against {:.2} ms (p50 {:.2} \
         against {:.2}); {} and {} accepted; polls answered after their wait: {answered}, early: {early}, broken: {broken}{}",
        waited.waiters,
        p99(beside),
        p99(without),
        p50(beside),
        p50(without),
        beside.accepted,
        without.accepted,
        waited.api_peak_mib.map_or_else(String::new, |mib| format!("; api at most {mib:.0} MiB resident")),
    );
    let more = json!({
        "waiters": waited.waiters, "polls_answered": answered, "polls_early": early, "polls_broken": broken,
        "accepted": beside.accepted, "requests": beside.requests, "accepted_without": without.accepted,
        "requests_without": without.requests, "answers": beside.by_status, "p50_ms": p50(beside),
        "p50_without_ms": p50(without), "api_peak_mib": waited.api_peak_mib, "cpu": waited.cpu,
        "redis_percent": waited.redis_percent,
    });
    Bar::of(name, p99(beside), "ms").cost_against(Some(p99(without)), RATIO_MAX).note(note).more(more)
}

async fn one(environment: &mut Environment, sizes: &Sizes, spinner: &Spinner) -> Result<Waited, Failure> {
    let api = environment.pids().get("api").copied();
    if let Some(api) = api {
        descriptors::for_service(api);
    }
    let count = descriptors::buyers_of_a_process(sizes.waiters)?;
    let sale = environment.sale("waiters", steady_crowd::ENOUGH, None).await?;
    spinner.say("those who will wait buy");
    let questions = bought(environment, &sale, count).await?;
    spinner.say("purchases without waiters");
    let watch = CpuMeter::start(environment);
    let without = loadgen::run(warmed(environment, sizes, &sale, PER_S, spinner)).await?;
    let busy_without = redis_percent(&watch.end());
    let (polls, stop) = (Arc::new(Polls::default()), Stopper::new());
    let mut tasks = JoinSet::new();
    let target = resolved(environment).await?;
    for question in questions {
        let connection = Connection::new(target.clone(), PATIENCE);
        tasks.spawn(wait(connection, question, polls.clone(), stop.clone()));
    }
    spinner.say(&format!("{count} long polls begin"));
    let until = Instant::now() + PATIENCE;
    while polls.asking.load(Relaxed) < count {
        if Instant::now() > until {
            return Err(Failure::Failed(format!("waiters: {} of {count} ask in time", polls.asking.load(Relaxed))));
        }
        sleep(CHECK_EVERY).await;
    }
    spinner.say(&format!("purchases beside {count} long polls"));
    let watch = CpuMeter::start(environment);
    let beside = loadgen::run(warmed(environment, sizes, &sale, PER_S, spinner)).await?;
    let usage = watch.end();
    let (cpu, redis_percent) = (usage.json(), redis_percent(&usage) - busy_without);
    stop.stop();
    // Those that wait are cut off: the answers were not asked for until now.
    tasks.shutdown().await;
    let polls = Arc::into_inner(polls).unwrap_or_default();
    measured(count, polls.early.load(Relaxed))?;
    Ok(Waited {
        waiters: count,
        without,
        beside,
        polls,
        api_peak_mib: api.and_then(resident_peak_mib),
        cpu,
        redis_percent,
    })
}

async fn resolved(environment: &Environment) -> Result<ServerAddress, Failure> {
    ServerAddress::resolve(&environment.api, PATIENCE).await.map_err(|error| Failure::Failed(error.to_string()))
}

/// Has `count` new buyers buy one unit each; returns their questions.
async fn bought(environment: &mut Environment, sale: &SaleId, count: u64) -> Result<Vec<String>, Failure> {
    let auth = &environment.settings.auth;
    let issuer = TokenIssuer::new(&auth.secret, &auth.issuer, &auth.audience)?;
    let first = environment.numbers(count);
    let names: Vec<String> = (first..first + count).map(|number| format!("waiter-{number:08}")).collect();
    let tokens = AccessTokens::signed(issuer, names).await?;
    let target = resolved(environment).await?;
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    stream::iter((0..count).map(|number| {
        let (target, access) = (target.clone(), tokens.token(index(number)));
        async move {
            let host = target.host().to_owned();
            let mut connection = Connection::new(target, PATIENCE);
            let request = purchase_in(sale.as_str(), &host, access, "");
            let answer = connection.call(request.as_bytes()).await;
            let answer = answer.map_err(|error| Failure::Failed(error.to_string()))?;
            let none = || Failure::Failed(format!("waiters: a purchase got {}", answer.status()));
            let path = answer.location().ok_or_else(none)?;
            Ok(format!("GET {path}?wait={WAIT_S} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {access}\r\n\r\n"))
        }
    }))
    .buffer_unordered(AT_A_TIME)
    .try_collect()
    .await
}

/// Asks again and again.
async fn wait(mut connection: Connection, question: String, polls: Arc<Polls>, stop: Stopper) {
    let mut is_first = true;
    while !stop.is_stopped() {
        let warm = connection.warm().await;
        if std::mem::take(&mut is_first) {
            polls.asking.fetch_add(1, Relaxed);
        }
        let answer = match warm {
            Ok(()) => connection.call(question.as_bytes()).await,
            Err(error) => Err(error),
        };
        let (count, pause_s) = match answer.map(|answer| (answer.status(), answer.retry_after_s())) {
            Ok((200, None)) => (&polls.answered, 0),
            Ok((200, Some(pause_s))) => (&polls.early, pause_s),
            // Not as fast as refusals come.
            Ok((_, pause_s)) => (&polls.broken, pause_s.unwrap_or(1)),
            Err(_) => (&polls.broken, 1),
        };
        count.fetch_add(1, Relaxed);
        stop.sleep(Duration::from_secs(pause_s)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_which_many_did_not_wait_is_none() {
        assert!(measured(10_000, 300).is_ok() && measured(60, 1).is_ok());
        assert!(measured(10_000, 301).is_err() && measured(60, 2).is_err() && measured(0, 1).is_err());
    }
}
