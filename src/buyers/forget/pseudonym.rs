//! What takes the place of an id: random, and at home where the id is. Values only.

use crate::domain::ids::UserId;
use crate::domain::shard::home_shard;
use std::collections::BTreeSet;

/// What every pseudonym begins with.
const BEGIN: &str = "forgotten-";
/// Names that are drawn. With 64 shards one in 64 fits; with a second number of shards one in some thousands.
const DRAWS: u32 = 2_000_000;

/// A pseudonym whose home shard is that of `buyer` for each of these numbers of shards; `None`: none was found.
pub(super) fn draw(buyer: &UserId, shard_counts: &BTreeSet<u16>) -> Option<UserId> {
    (0..DRAWS).find_map(|_| {
        let drawn = UserId::parse(&format!("{BEGIN}{:024x}", rand::random::<u128>() >> 32)).ok()?;
        let is_at_home = |shards: &u16| home_shard(&drawn, *shards) == home_shard(buyer, *shards);
        shard_counts.iter().all(is_at_home).then_some(drawn)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pseudonym_is_at_home_where_the_buyer_is_for_each_number_of_shards() {
        let buyer = UserId::parse("ann").unwrap();
        for counts in [vec![1], vec![4], vec![1, 3, 8], vec![63, 64]] {
            let counts = BTreeSet::from_iter(counts);
            let drawn = draw(&buyer, &counts).unwrap();
            assert!(drawn.as_str().starts_with(BEGIN) && drawn.as_str().len() == 34);
            assert!(counts.iter().all(|shards| home_shard(&drawn, *shards) == home_shard(&buyer, *shards)));
            assert_ne!(draw(&buyer, &counts).unwrap(), drawn, "another one each time");
        }
    }
}
