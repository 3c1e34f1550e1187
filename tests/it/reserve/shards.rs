//! Group A, B4 (windows 4, 6, 20): a sale over several buckets sells what it would sell from one, to the last unit.

use super::buckets::Buckets;
use super::group_a_model::{request_id, user_id};
use super::model::{Ask, EPOCH, Model};
use super::resp::RawRedis;
use super::world::{World, run};
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::reserve::Reserved;
use seckill::p2_reserve::Decision;

/// Random runs of each property.
const CASES: u32 = 220;
const SHARDS: std::ops::RangeInclusive<u16> = 2..=8;

/// One world, and P2 for each number of shards.
fn benches() -> (World, Vec<Buckets>) {
    let mut made = None;
    run(async {
        let world = World::with(&[], &[]).await;
        let mut all = Vec::new();
        for shards in SHARDS {
            all.push(Buckets::of(&world, shards).await);
        }
        made = Some((world, all));
    });
    made.unwrap()
}

/// Runs a property on so many random cases.
pub fn with_cases<S: Strategy>(cases: u32, strategy: S, test: impl AsyncFn(S::Value) -> Result<(), TestCaseError>) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let outcome = TestRunner::new(config).run(&strategy, |case| {
        let mut done = Ok(());
        run(async { done = test(case).await });
        done
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

/// What happens to a sale.
#[derive(Debug, Clone)]
pub enum Step {
    /// A purchase.
    Buy(Ask),
    /// So many units more.
    Grant(u32),
}

/// Mostly purchases, some of them repeated.
pub fn step() -> impl Strategy<Value = Step> {
    // A request id belongs to its buyer, as tokens see to; repeats happen.
    let ask = (0u64..4, 0u8..10, 1u32..5).prop_map(|(n, user, quantity)| Ask {
        id: u64::from(user) * 10 + n,
        user,
        quantity,
    });
    prop_oneof![12 => ask.prop_map(Step::Buy), 1 => (1u32..6).prop_map(Step::Grant)]
}

/// One after the other, several buckets answer exactly as one does: nobody can tell how the stock is split.
pub async fn like_one(
    bench: &Buckets,
    sale: &SaleId,
    (limit, stock): (u32, u64),
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let mut model = Model::new(u64::from(limit), 100_000, stock);
    for (no, step) in steps.iter().enumerate() {
        match step {
            Step::Grant(units) => {
                bench.grant(sale, &format!("g{no}"), i64::from(*units)).await;
                model.stock += u64::from(*units);
            }
            Step::Buy(ask) => {
                let decided = model.decide(*ask, EPOCH);
                let sold_out = decided == Reserved::Short(0);
                let expected = if sold_out { Decision::AllEmpty } else { Decision::Decided(decided) };
                let answer = bench.buy(sale, user_id(ask.user), request_id(ask.id), ask.quantity).await;
                prop_assert_eq!(answer, expected, "step {}: {:?}", no, ask);
            }
        }
        prop_assert_eq!(bench.left(sale).await.unsigned_abs(), model.stock, "step {}", no);
    }
    Ok(())
}

#[test]
fn several_buckets_answer_like_one() {
    let (world, benches) = benches();
    let cases = (
        proptest::sample::select((0..benches.len()).collect::<Vec<_>>()),
        prop_oneof![Just(0u32), Just(1), 2u32..8],
        0u64..30,
        proptest::collection::vec(step(), 1..30),
    );
    with_cases(CASES, cases, async |(at, limit, stock, steps)| {
        RawRedis::of(&world).await.clear().await;
        let sale = benches[at].sale("like-one", limit, i64::try_from(stock).unwrap()).await;
        like_one(&benches[at], &sale, (limit, stock), &steps).await
    });
}

/// A buyer who comes back while the answer is "come back".
async fn insist(bench: &Buckets, sale: &SaleId, user: UserId, id: RequestId, quantity: u32) -> Decision {
    loop {
        let decision = bench.buy(sale, user.clone(), id, quantity).await;
        if decision != Decision::BucketEmpty {
            return decision;
        }
    }
}

/// Everybody at once; returns the accepted requests, and the smallest quantity that was refused for want of stock.
pub async fn rush(bench: &Buckets, sale: &SaleId, asks: &[Ask]) -> (Vec<Ask>, Option<u32>) {
    let rushing = asks
        .iter()
        .map(|ask| async { (*ask, insist(bench, sale, user_id(ask.user), request_id(ask.id), ask.quantity).await) });
    let (mut accepted, mut refused) = (Vec::new(), None::<u32>);
    for (ask, decision) in join_all(rushing).await {
        if decision == Decision::Decided(Reserved::Accepted) {
            accepted.push(ask);
        } else if matches!(decision, Decision::AllEmpty | Decision::Decided(Reserved::Short(_))) {
            refused = Some(refused.map_or(ask.quantity, |least| least.min(ask.quantity)));
        } else {
            let limited =
                matches!(decision, Decision::Decided(Reserved::DuplicateBuyer(_) | Reserved::LimitExceeded(_)));
            assert!(limited, "{ask:?}: {decision:?}");
        }
    }
    (accepted, refused)
}

#[test]
fn selling_the_last_unit_is_exact() {
    let (world, benches) = benches();
    let eight = benches.last().unwrap();
    // As many buyers as units, or more: then nobody may hear "sold out" while a unit is on its way to a bucket.
    let more = prop_oneof![Just(0usize), 1usize..24];
    with_cases(CASES, (0i64..24, more), async |(stock, more)| {
        RawRedis::of(&world).await.clear().await;
        let sale = eight.sale("last", 1, stock).await;
        let buyers = usize::try_from(stock).unwrap() + more;
        let asks: Vec<Ask> =
            (0..buyers).map(|n| Ask { id: n as u64, user: u8::try_from(n).unwrap(), quantity: 1 }).collect();
        let (got, _) = rush(eight, &sale, &asks).await;
        prop_assert_eq!(got.len(), usize::try_from(stock).unwrap(), "exactly the stock is sold");
        prop_assert_eq!(eight.left(&sale).await, 0);
        Ok(())
    });
}

#[test]
fn a_crowd_on_several_buckets_takes_what_is_there_and_nobody_more_than_their_limit() {
    let (world, benches) = benches();
    let ask = (0u8..20, 1u32..4).prop_map(|(user, quantity)| (user, quantity));
    let cases = (
        proptest::sample::select((0..benches.len()).collect::<Vec<_>>()),
        prop_oneof![Just(0u32), Just(1), 2u32..6],
        (0i64..40, proptest::option::of(1i64..20)),
        proptest::collection::vec(ask, 1..40),
    );
    with_cases(CASES, cases, async |(at, limit, (stock, top_up), asks)| {
        RawRedis::of(&world).await.clear().await;
        let (bench, most) = (&benches[at], if limit == 0 { u32::MAX } else { limit });
        let sale = bench.sale("crowd", limit, stock).await;
        let asks: Vec<Ask> =
            asks.into_iter().enumerate().map(|(id, (user, quantity))| Ask { id: id as u64, user, quantity }).collect();
        let add = async {
            if let Some(units) = top_up {
                bench.grant(&sale, "more", units).await;
            }
        };
        let ((first, _), ()) = tokio::join!(rush(bench, &sale, &asks), add);
        // Who heard "sold out" before the top-up comes back after it.
        let again: Vec<Ask> = asks.iter().map(|ask| Ask { id: ask.id + 1_000, ..*ask }).collect();
        let (second, refused) = rush(bench, &sale, &again).await;
        let left = bench.left(&sale).await;
        let accepted = [first, second].concat();
        let sold: u32 = accepted.iter().map(|ask| ask.quantity).sum();
        prop_assert_eq!(i64::from(sold) + left, stock + top_up.unwrap_or(0), "no unit is lost or sold twice");
        for user in 0..20 {
            let own = accepted.iter().filter(|ask| ask.user == user);
            let (times, units) = (own.clone().count(), own.map(|ask| ask.quantity).sum::<u32>());
            prop_assert!(if limit == 1 { times <= 1 } else { units <= most }, "{} bought {:?}", user, (times, units));
        }
        if let Some(least) = refused {
            prop_assert!(left < i64::from(least), "{} were refused, {} are left", least, left);
        }
        Ok(())
    });
}
