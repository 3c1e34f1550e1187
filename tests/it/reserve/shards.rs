//! A sale over several buckets (B4; windows 4, 6, 20) sells what it would sell from one, to the last unit.

use crate::support::basics::resp::RawRedis;
use crate::support::world::parts::bucket_cases::{like_one, rush, step, with_cases};
use crate::support::world::parts::buckets::Buckets;
use crate::support::world::parts::reserve_model::Ask;
use crate::support::world::{World, run};
use proptest::prelude::*;

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

#[test]
fn selling_the_last_unit_is_exact() {
    let (world, benches) = benches();
    let eight = benches.last().unwrap();
    // As many buyers as units, or more: then no buyer may get "sold out" while a unit is on its way to a bucket.
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
fn a_crowd_on_several_buckets_takes_what_is_there_and_no_buyer_more_than_their_limit() {
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
        // Who got "sold out" before the top-up comes back after it.
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
