//! Properties of a sale over several buckets, for any Redis they are on: one server or a cluster.

use super::buckets::Buckets;
use super::reserve_model::{Ask, EPOCH, Model};
use super::script_model::{request_id, user_id};
use crate::support::world::run;
use futures::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use seckill::domain::ids::{RequestId, SaleId, UserId};
use seckill::domain::reserve::Reserved;
use seckill::p2_reserve::Decision;

/// Runs a property on `cases` random cases.
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
    /// A grant of units.
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

/// One after the other, several buckets answer exactly as one does: no answer shows how the stock is split.
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
