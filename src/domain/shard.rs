//! Which shard a buyer lives on. Everything about one buyer (dedup, limit, ledger) is on the home shard, so one script on
//! one slot decides and uniqueness needs no second look-up.

use super::ids::UserId;
use xxhash_rust::xxh64::xxh64;

/// The buyer's home shard, `0..shards`: XXH64 (seed 0) of the bytes of the id under which limits count
/// ([`limit_key`](super::request::Purchase::limit_key)), modulo the shard count.
///
/// Pinned by test vectors: another hash would send a buyer who already bought to a shard that does not know it. For the
/// same reason the shard count of a live sale cannot change.
#[must_use]
pub fn home_shard(user: &UserId, shards: u16) -> u16 {
    let shards = u64::from(shards.max(1));
    u16::try_from(xxh64(user.as_str().as_bytes(), 0) % shards).unwrap_or(0)
}

/// Which of the `queues` order queues a sale uses, `0..queues`. All orders of one sale go to the same queue, so that one
/// writer at a time updates its stock row.
#[must_use]
pub fn order_queue_index(sale: &str, queues: u16) -> u16 {
    let queues = u64::from(queues.max(1));
    u16::try_from(xxh64(sale.as_bytes(), 0) % queues).unwrap_or(0)
}

/// The part of `units` that `shard` gets: as even as whole units allow, the first shards take the rest.
#[must_use]
pub fn share(units: i64, shard: u16, shards: u16) -> i64 {
    let (shard, shards) = (i64::from(shard), i64::from(shards.max(1)));
    units / shards + i64::from(shard < units % shards)
}

/// How many of `units` each bucket gives, so that those which are left are as even as whole units allow: the fullest ones give first.
/// All of them together give `units`, or everything where they have fewer. Buckets below 0 count as empty.
#[must_use]
pub(crate) fn taken_evenly(buckets: &[i64], units: i64) -> Vec<i64> {
    let above = |level: i64| -> i64 { buckets.iter().map(|bucket| (bucket - level).max(0)).sum() };
    // The lowest level above which there are no more units than wanted; `low` has more, or is below 0.
    let (mut low, mut level) = (-1, buckets.iter().copied().max().unwrap_or(0).max(0));
    while level - low > 1 {
        let middle = low + (level - low) / 2;
        if above(middle) <= units { level = middle } else { low = middle }
    }
    let mut rest = units - above(level);
    let mut given = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        let one_more = i64::from(rest > 0 && level > 0 && *bucket >= level);
        rest -= one_more;
        given.push((bucket - level).max(0) + one_more);
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_add_up_and_differ_by_one_at_most(units in 0i64..100_000, shards in 1u16..64) {
            let shares: Vec<i64> = (0..shards).map(|shard| share(units, shard, shards)).collect();
            prop_assert_eq!(shares.iter().sum::<i64>(), units);
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }

    proptest! {
        #[test]
        fn what_is_taken_leaves_the_buckets_even(
            buckets in proptest::collection::vec(-2i64..50, 0..9), units in 0i64..300,
        ) {
            let given = taken_evenly(&buckets, units);
            let there: i64 = buckets.iter().map(|bucket| bucket.max(&0)).sum();
            prop_assert_eq!(given.iter().sum::<i64>(), units.min(there));
            let left: Vec<i64> = buckets.iter().zip(&given).map(|(bucket, given)| bucket.max(&0) - given).collect();
            let highest = left.iter().zip(&given).filter(|(_, given)| **given > 0).map(|(left, _)| *left).max();
            prop_assert!(left.iter().all(|left| *left >= 0));
            // What gave is not left with fewer than one below the fullest; what did not give may have been emptier.
            let fullest = left.iter().copied().max().unwrap_or(0);
            prop_assert!(highest.is_none_or(|highest| highest <= fullest));
            for (left, given) in left.iter().zip(&given) {
                prop_assert!(*given == 0 || *left + 1 >= fullest, "{:?} gave {:?}", buckets, given);
            }
        }
    }

    #[test]
    fn the_home_shard_is_pinned() {
        // XXH64 of "" and "a" with seed 0 are the published vectors; the rest pins our use of it.
        assert_eq!(xxh64(b"", 0), 0xEF46_DB37_51D8_E999);
        assert_eq!(xxh64(b"a", 0), 0xD24E_C4F1_A98C_6E5B);
        let shards: Vec<u16> =
            ["alice", "bob", "user-1", "用户"].iter().map(|u| home_shard(&UserId::parse(u).unwrap(), 8)).collect();
        assert_eq!(shards, [1, 3, 0, 2]);
    }

    #[test]
    fn shards_are_filled_evenly() {
        let mut counts = [0u32; 8];
        for n in 0..80_000 {
            counts[usize::from(home_shard(&UserId::parse(&format!("user-{n}")).unwrap(), 8))] += 1;
        }
        assert!(counts.iter().all(|&c| (9_500..10_500).contains(&c)), "{counts:?}");
    }
}
