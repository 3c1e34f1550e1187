//! Window 13: what a power cut of Redis loses. With `appendfsync always` nothing that was answered 202; with `everysec` some,
//! and they cannot be named afterwards, which is why the durability table says what it says.

use crate::support::processes::own_redis::PowerCutRedis;
use crate::support::world::{World, eventually, run_waiting, time_passes};
use seckill::domain::ids::SaleId;
use seckill::p5_reconcile::Window;
use seckill::roles::Role;
use seckill_bench::loadgen::{self, BuyerAnswer, FinalAnswer, LoadPlan, LoadReport};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Power cuts with `always`; each of them must lose nothing.
const CUTS: u64 = 3;
/// Power cuts with `everysec` until one has to have lost something.
const CUTS_MAX: u64 = 10;

/// A crowd buys until the power is cut under it, at some moment of the second between two lazy fsyncs; Redis is on the rest
/// of its disk afterwards. Returns the answers that the buyers got.
async fn cut_under_a_crowd(world: &World, redis: &PowerCutRedis, sale: &SaleId, round: u64) -> (LoadReport, u64) {
    let mut plan = LoadPlan::new(&world.api, sale.clone(), world.settings.auth.secret.clone());
    (plan.buyers, plan.first_buyer, plan.connections) = (100_000, round * 100_000, 16);
    let accepted = Arc::new(AtomicU64::new(0));
    let seen = accepted.clone();
    plan.progress = Some(Arc::new(move |progress| seen.store(progress.accepted, Relaxed)));
    (plan.tokens, plan.keep_history, plan.max_retries, plan.timeout_ms) = (false, true, 0, 10_000);
    let stop = plan.stop.clone();
    let cutting = async {
        // Making a hundred thousand access tokens takes its time.
        eventually("somebody has bought", async || accepted.load(Relaxed) > 0).await;
        time_passes(300 + 137 * (round % 7)).await;
        let gone = redis.cut().await;
        stop.stop();
        gone
    };
    let (report, gone) = tokio::join!(loadgen::run(plan), cutting);
    redis.boot().await;
    world.redis_is_back().await;
    (report.expect("a run"), gone)
}

/// How many of those who got 202 Redis does not know any more.
async fn lost(world: &World, sale: &SaleId, report: &LoadReport) -> usize {
    let accepted: Vec<&BuyerAnswer> =
        report.history.iter().filter(|accepted| accepted.verdict == FinalAnswer::Accepted).collect();
    assert!(!accepted.is_empty(), "no purchase: {:?}", report.by_status);
    let mut lost = 0;
    for page in accepted.chunks(500) {
        let ids: Vec<_> = page.iter().map(|accepted| accepted.request_id.expect("an id")).collect();
        let records = world.servers.redis.ledger.lookup(sale, 0, &ids).await.expect("the ledger");
        lost += records.iter().filter(|record| record.is_none()).count();
    }
    lost
}

/// The script is loaded again and the sale sells.
async fn sells(world: &World, sale: &SaleId, buyer: &str) {
    eventually("selling goes on", async || world.buy(sale, buyer, 1, None).await.status == 202).await;
}

#[test]
fn a_power_cut_with_appendfsync_always_loses_nothing_that_was_answered_202() {
    run_waiting(async {
        let redis = PowerCutRedis::start("cut-always", "always").await;
        let world = World::on_redis(&redis.url(), "cut-always", &[Role::Api], &[]).await;
        let sale = world.sale("cut", 10_000_000, None).await;
        for round in 0..CUTS {
            sells(&world, &sale, "before").await;
            let (report, _) = cut_under_a_crowd(&world, &redis, &sale, round).await;
            assert_eq!(lost(&world, &sale, &report).await, 0, "cut {round}: {:?}", report.by_status);
        }
        sells(&world, &sale, "after").await;
        // All of it, and what Redis has although no buyer got an answer, becomes orders.
        let rest = world.extra_roles(&[Role::Relay, Role::Consumer, Role::Reconcile], |_| {});
        let audit = world.settled(&sale).await;
        assert!(audit.counted.ordered > 0, "{audit:#?}");
        rest.stop().await;
        world.finish().await;
    });
}

#[test]
fn a_power_cut_with_appendfsync_everysec_loses_what_was_answered_202() {
    run_waiting(async {
        let redis = PowerCutRedis::start("cut-everysec", "everysec").await;
        let world = World::on_redis(&redis.url(), "cut-everysec", &[Role::Api], &[]).await;
        let sale = world.sale("cut", 10_000_000, None).await;
        // The sale itself is on the disk before the first cut.
        time_passes(2_500).await;
        for round in 0..CUTS_MAX {
            sells(&world, &sale, "before").await;
            let (report, gone) = cut_under_a_crowd(&world, &redis, &sale, round).await;
            if lost(&world, &sale, &report).await > 0 {
                assert!(gone > 0);
                // Accept, stock and ledger went together: not even the audit can name them.
                assert!(world.audit(&sale, Window::Ms(600_000)).await.consistent(), "no audit sees it");
                world.stop().await;
                return;
            }
        }
        panic!("{CUTS_MAX} power cuts with everysec lost nothing: the emulation proves nothing");
    });
}
