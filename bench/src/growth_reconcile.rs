//! `growth_reconcile`: what a round of P5 costs beside a sale of ten thousand orders, and beside one of a million or more (E13).
//!
//! Each sale is filled in bulk: outcomes, orders, journal and Redis' counters, as if all of it had landed and been trimmed, and as a payment
//! step leaves it: of three orders one expired, and two have their payments. Then
//! the reconciler's own code works, in this process and as leader: a first round that counts everything, as after a
//! restart, and later ones before each of which some new orders were bought, relayed and landed. Told is what a later round
//! takes, and how that of the large sale compares with that of the small one.

use super::bar::{Bar, median};
use super::cpu::CpuMeter;
use super::environment::Environment;
use super::fill::fill;
use super::growth_cost::each;
use super::sizes::{Sizes, Spinner};
use super::{landing, relay};
use crate::baseline::mysql_bulk::{self as bulk, Bulk};
use crate::baseline::redis;
use seckill::cli::Failure;
use seckill::domain::ids::SaleId;
use seckill::domain::shard::share;
use seckill::p5_reconcile::Reconcile;
use seckill::runtime::Worker;
use serde::Serialize;
use serde_json::json;
use std::time::Instant;

/// Orders of the small sale.
const SMALL: u64 = 10_000;
/// Most a later round may cost beside the large sale, as a multiple of beside the small one. Not 1: the small sale is one piece
/// that is counted each time, the large one has old pieces, and one of them is read again each round.
const BAR: f64 = 5.0;
/// New orders before each later round.
const NEW: u64 = 1_000;
const ROUNDS: usize = 7;
/// Units beyond the orders that are there, for the new ones; not every shard gets the same buyers.
const MORE: u64 = 100_000;

/// What one round took.
#[derive(Debug, Clone, Copy, Serialize)]
struct ReconcileRound {
    /// Time passed, ms.
    elapsed_ms: f64,
    /// Processor time of this process and all servers, ms.
    cpu_ms: f64,
}

#[derive(Debug, Clone, Serialize)]
struct ReconcilePoint {
    orders: u64,
    /// To write them, s.
    filled_s: f64,
    /// The first round.
    first: ReconcileRound,
    /// The median of the later rounds, each figure by itself.
    later: ReconcileRound,
    rounds: Vec<ReconcileRound>,
}

/// Measures both. Nothing may be under way, and only the api role may run.
pub(super) async fn measure(
    environment: &mut Environment,
    sizes: &Sizes,
    spinner: &Spinner,
) -> Result<Vec<Bar>, Failure> {
    let mut settings = environment.settings.p5_reconcile.clone();
    settings.interval_ms = 0;
    let mut reconcile = environment.servers.reconcile(&environment.settings, settings);
    // The reconcile role led until a moment ago.
    let until = Instant::now() + sizes.patience;
    while !reconcile.leads() {
        environment.go_on()?;
        reconcile.step().await?;
        if Instant::now() > until {
            return Err(Failure::Failed("growth_reconcile: another process leads the reconciliation".to_owned()));
        }
    }
    let small = one(environment, sizes, &mut reconcile, (SMALL, spinner)).await?;
    let large = one(environment, sizes, &mut reconcile, (sizes.orders, spinner)).await?;
    Ok(vec![bar(&small, &large)])
}

async fn one(
    environment: &mut Environment,
    sizes: &Sizes,
    reconcile: &mut Reconcile,
    (orders, spinner): (u64, &Spinner),
) -> Result<ReconcilePoint, Failure> {
    let begun = Instant::now();
    let sale = filled(environment, orders, spinner).await?;
    let filled_s = begun.elapsed().as_secs_f64();
    spinner.say(&format!("{orders} orders: the first round"));
    let first = round(environment, reconcile).await?;
    let (mut relayer, mut rounds) = (relay::relayer(environment), Vec::new());
    for no in 1..=ROUNDS {
        spinner.say(&format!("{orders} orders: round {no} of {ROUNDS}"));
        fill(environment, &sale, NEW).await?;
        relay::empty(environment, &mut relayer, sizes).await?;
        landing::empty(environment, landing::landers(environment), NEW, sizes).await?;
        rounds.push(round(environment, reconcile).await?);
    }
    // The next one must not pay for this sale, too.
    environment.archive(&sale).await?;
    let of = |figure: fn(&ReconcileRound) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>()).unwrap_or(0.0);
    let later = ReconcileRound { elapsed_ms: of(|round| round.elapsed_ms), cpu_ms: of(|round| round.cpu_ms) };
    Ok(ReconcilePoint { orders, filled_s, first, later, rounds })
}

/// A warmed sale with `orders` orders, spread over all shards.
async fn filled(environment: &mut Environment, orders: u64, spinner: &Spinner) -> Result<SaleId, Failure> {
    let units = i64::try_from(2 * orders + MORE).unwrap_or(i64::MAX);
    let sale = environment.sale("growth-reconcile", units, Some(1)).await?;
    let (db, shards) = (environment.servers.db.clone(), environment.settings.redis.shards);
    bulk::prepare(&db, &sale).await?;
    let mut written = 0;
    for shard in 0..shards {
        let of_shard = share(i64::try_from(orders).unwrap_or(i64::MAX), shard, shards);
        let (mut number, last) = (1, of_shard.unsigned_abs());
        while number <= last {
            environment.go_on()?;
            spinner.say(&format!("{written} of {orders} orders written"));
            let count = (last - number + 1).min(bulk::PIECE);
            let request_id = environment.numbers(count);
            let bulk = Bulk { sale: &sale, shard, number, request_id, count };
            bulk::write(&db, bulk).await?;
            let (grant, units) = (format!("return-{request_id}"), bulk::end(&db, bulk).await?);
            redis::given_back(&environment.servers.redis, &sale, shard, (&grant, units)).await?;
            (number, written) = (number + count, written + count);
        }
        redis::settled(&environment.servers.redis, &sale, shard, of_shard).await?;
    }
    bulk::finish(&db).await?;
    Ok(sale)
}

/// One step of the leader: everything a round does, with all sales.
async fn round(environment: &Environment, reconcile: &mut Reconcile) -> Result<ReconcileRound, Failure> {
    environment.go_on()?;
    let watch = CpuMeter::start_as("reconcile", environment);
    reconcile.step().await?;
    let usage = watch.end();
    if !reconcile.leads() {
        return Err(Failure::Failed("growth_reconcile: another process leads the reconciliation by now".to_owned()));
    }
    Ok(ReconcileRound { elapsed_ms: usage.elapsed_s * 1e3, cpu_ms: usage.seconds.values().sum::<f64>() * 1e3 })
}

fn bar(small: &ReconcilePoint, large: &ReconcilePoint) -> Bar {
    let ratio = each(large.later.cpu_ms, small.later.cpu_ms);
    let words = |point: &ReconcilePoint| {
        let ReconcilePoint { orders, first, later, .. } = point;
        format!(
            "{orders} orders: {:.0} ms ({:.0} ms of processor), the first one {:.0} ms ({:.0})",
            later.elapsed_ms, later.cpu_ms, first.elapsed_ms, first.cpu_ms
        )
    };
    let note = format!(
        "processor time of a later round, {NEW} new orders before each, beside that of the small sale; {}; {}",
        words(small),
        words(large)
    );
    let more = json!({ "points": [small, large], "new_orders": NEW });
    Bar::of("growth_reconcile", ratio, "× smallest").at_most(BAR).note(note).more(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(orders: u64, cpu_ms: f64) -> ReconcilePoint {
        let later = ReconcileRound { elapsed_ms: cpu_ms, cpu_ms };
        ReconcilePoint { orders, filled_s: 1.0, first: later, later, rounds: vec![later] }
    }

    #[test]
    fn a_round_that_grows_with_the_sale_misses_the_bar() {
        let holds = |cpu_ms| bar(&point(SMALL, 20.0), &point(1_000_000, cpu_ms)).holds;
        assert_eq!([holds(60.0), holds(2_000.0)], [Some(true), Some(false)]);
        assert_eq!(bar(&point(SMALL, 0.0), &point(1_000_000, 1.0)).holds, Some(false), "nothing was measured");
    }
}
