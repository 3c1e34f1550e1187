//! B4 on a cluster (windows 4, 6, 20): a sale over eight buckets on three servers sells what it would sell from one, to the
//! last unit. The same properties as on one Redis (`tests/it/reserve/shards.rs`), fewer runs.

use crate::support::processes::redis_sets::Cluster;
use crate::support::world::clusters::SHARDS;
use crate::support::world::parts::bucket_cases::{like_one, rush, step, with_cases};
use crate::support::world::parts::buckets::Buckets;
use crate::support::world::parts::reserve_model::Ask;
use crate::support::world::{World, run_waiting};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU32, Ordering};

const CASES: u32 = 40;

fn bench(name: &str) -> (Cluster, World, Buckets) {
    let mut made = None;
    run_waiting(async {
        let cluster = Cluster::start(3, 0, &[]).await;
        let world = World::on_cluster((&cluster, SHARDS), name, &[], &[]).await;
        let buckets = Buckets::of(&world, SHARDS).await;
        made = Some((cluster, world, buckets));
    });
    made.unwrap()
}

/// A name for each case's sale.
fn sale_name() -> String {
    static SALES: AtomicU32 = AtomicU32::new(0);
    format!("s{}", SALES.fetch_add(1, Ordering::SeqCst))
}

#[test]
fn buckets_on_three_servers_answer_like_one() {
    let (_cluster, _world, bench) = bench("cluster-like");
    let steps = proptest::collection::vec(step(), 1..30);
    with_cases(CASES, (prop_oneof![Just(0u32), Just(1), 2u32..8], 0u64..30, steps), async |(limit, stock, steps)| {
        let sale = bench.sale(&sale_name(), limit, i64::try_from(stock).unwrap()).await;
        like_one(&bench, &sale, (limit, stock), &steps).await
    });
}

#[test]
fn selling_the_last_unit_of_three_servers_is_exact() {
    let (_cluster, _world, bench) = bench("cluster-last");
    with_cases(CASES, (0i64..24, prop_oneof![Just(0usize), 1usize..24]), async |(stock, more)| {
        let sale = bench.sale(&sale_name(), 1, stock).await;
        let buyers = usize::try_from(stock).unwrap() + more;
        let asks: Vec<Ask> =
            (0..buyers).map(|n| Ask { id: n as u64, user: u8::try_from(n).unwrap(), quantity: 1 }).collect();
        let (got, _) = rush(&bench, &sale, &asks).await;
        prop_assert_eq!(got.len(), usize::try_from(stock).unwrap(), "exactly the stock is sold");
        prop_assert_eq!(bench.left(&sale).await, 0);
        Ok(())
    });
}
