//! The draw of a line, as anybody can recompute it.
//!
//! Input: the entry ids of the sealed list, the seed, perhaps a beacon. Output: the digest of the list, and a rank for each id. Nothing else
//! goes into it: neither buyers nor the order in which they came. Values only.
//!
//! - commitment: SHA-256(seed), public before the first entry
//! - digest: SHA-256 over the ids, ascending, each in decimal digits and a newline
//! - with a beacon the seed of the ranks is SHA-256(seed ‖ beacon), else the seed itself
//! - ranks: the ids in the order of SHA-256(seed of the ranks ‖ digest ‖ id in decimal digits), and of the ids where two are equal

use sha2::{Digest, Sha256};
use std::cmp::Ordering;
use std::fmt::Write;

/// A hash, a seed, a digest.
pub type Bytes32 = [u8; 32];

/// The algorithm in words, as the API says it.
pub const ALGORITHM: &str = "commitment = SHA-256(seed). digest = SHA-256 over the entry ids in ascending order, each in decimal digits \
    followed by a newline. key = seed, or SHA-256(seed + beacon in UTF-8) where there is a beacon. The entry with rank 1 is the one with \
    the lowest SHA-256(key + digest + entry id in decimal digits), compared as bytes, and so on. seed, digest and key are 32 bytes.";

/// What is public of a seed before the draw.
#[must_use]
pub fn commitment(seed: &Bytes32) -> Bytes32 {
    Sha256::digest(seed).into()
}

/// The seed of the ranks.
#[must_use]
pub fn key(seed: &Bytes32, beacon: Option<&str>) -> Bytes32 {
    beacon.map_or(*seed, |beacon| Sha256::new().chain_update(seed).chain_update(beacon).finalize().into())
}

/// The digest of a list, id by id in ascending order.
#[derive(Clone, Default)]
pub struct ListDigest {
    hash: Sha256,
    text: String,
    /// How many ids were added.
    pub count: u64,
}

impl ListDigest {
    /// Adds the next id.
    pub fn add(&mut self, id: u64) {
        self.text.clear();
        // Into a string it cannot fail.
        let _written: std::fmt::Result = writeln!(self.text, "{id}");
        self.hash.update(self.text.as_bytes());
        self.count += 1;
    }

    /// That of all ids that were added.
    #[must_use]
    pub fn finish(self) -> Bytes32 {
        self.hash.finalize().into()
    }

    /// That of a whole list in ascending order.
    #[must_use]
    pub fn of(ids: &[u64]) -> Bytes32 {
        let mut digest = Self::default();
        ids.iter().for_each(|id| digest.add(*id));
        digest.finish()
    }
}

/// The ranks of a list; 12 bytes an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranks {
    /// In ascending order.
    ids: Vec<u64>,
    /// Of each id its rank, from 1.
    ranks: Vec<u32>,
}

impl Ranks {
    /// The ranks of these ids, which are in ascending order and fewer than 2^32.
    #[must_use]
    pub fn new(ids: Vec<u64>, key: &Bytes32, digest: &Bytes32) -> Self {
        let base = Sha256::new().chain_update(key).chain_update(digest);
        let hash = |id: u64| -> Bytes32 { base.clone().chain_update(id.to_string()).finalize().into() };
        // Eight bytes distinguish nearly all of them; the whole hash is compared where they do not.
        let mut order: Vec<(u64, u32)> =
            (0_u32..).zip(&ids).map(|(place, id)| (first_bytes(hash(*id)), place)).collect();
        let id_at = |place: u32| ids.get(place as usize).copied().unwrap_or_default();
        order.sort_unstable_by(|(a, of_a), (b, of_b)| {
            a.cmp(b).then_with(|| whole((hash(id_at(*of_a)), *of_a), (hash(id_at(*of_b)), *of_b)))
        });
        let mut ranks = vec![0; ids.len()];
        for (rank, (_, place)) in (1..).zip(&order) {
            if let Some(of_id) = ranks.get_mut(*place as usize) {
                *of_id = rank;
            }
        }
        Self { ids, ranks }
    }

    /// The rank of an id, from 1; `None`: it is not in the list.
    #[must_use]
    pub fn of(&self, id: u64) -> Option<u32> {
        self.ids.binary_search(&id).ok().and_then(|at| self.ranks.get(at)).copied()
    }

    /// The ids in ascending order.
    #[must_use]
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// The ids of the ranks 1 to `count`, or of all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Vec<u64> {
        let mut found: Vec<(u32, u64)> = self.ranks.iter().copied().zip(self.ids.iter().copied()).collect();
        found.retain(|(rank, _)| *rank as usize <= count);
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }
}

fn first_bytes(hash: Bytes32) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = hash;
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}

fn whole(a: (Bytes32, u32), b: (Bytes32, u32)) -> Ordering {
    a.cmp(&b)
}

/// In hexadecimal.
#[must_use]
pub fn hex(bytes: &Bytes32) -> String {
    bytes.iter().fold(String::with_capacity(64), |mut text, byte| {
        let _written: std::fmt::Result = write!(text, "{byte:02x}");
        text
    })
}

/// Reads 64 hexadecimal digits.
#[must_use]
pub fn from_hex(text: &str) -> Option<Bytes32> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(no: u32) -> Bytes32 {
        Sha256::digest(no.to_be_bytes()).into()
    }

    fn ranks(ids: &[u64], no: u32, beacon: Option<&str>) -> Ranks {
        Ranks::new(ids.to_vec(), &key(&seed(no), beacon), &ListDigest::of(ids))
    }

    #[test]
    fn every_entry_has_one_rank_and_the_same_one_each_time() {
        let ids: Vec<u64> = (1..=1_000).map(|no| no * 7).collect();
        let drawn = ranks(&ids, 1, None);
        let all = drawn.first(2_000);
        assert_eq!(all.len(), 1_000);
        assert!((1..).zip(&all).all(|(rank, id)| drawn.of(*id) == Some(rank)));
        assert_eq!(drawn.of(8), None);
        assert_eq!(drawn, ranks(&ids, 1, None));
        assert_ne!(drawn, ranks(&ids, 2, None), "another seed");
        assert_ne!(drawn, ranks(&ids, 1, Some("b")), "a beacon");
        assert_ne!(drawn.first(999), ranks(&ids[..999], 1, None).first(999), "an entry less");
        assert_eq!(ranks(&[], 1, None).first(3), [0_u64; 0]);
    }

    /// What `docs/verify-draw.py` and this have in common, with hashes that were made by another program.
    #[test]
    fn a_known_draw_stays_what_it_is() {
        let seed: Bytes32 = std::array::from_fn(|at| u8::try_from(at).unwrap());
        assert_eq!(hex(&commitment(&seed)), "630dcd2966c4336691125448bbb25b4ff412a49c732db2c8abc1b8581bd710dd");
        let ids = [9, 10, 100, 254_385_310_867_492_864];
        let digest = ListDigest::of(&ids);
        assert_eq!(hex(&digest), "51932793e72982201ec0b3bd9aaca6ac159b6327a544e494c292101b09156ff3");
        assert_eq!(Ranks::new(ids.to_vec(), &seed, &digest).first(4), [9, 10, 254_385_310_867_492_864, 100]);
        assert_eq!(
            Ranks::new(ids.to_vec(), &key(&seed, Some("灯塔")), &digest).first(4),
            [9, 254_385_310_867_492_864, 10, 100]
        );
        assert_eq!(from_hex(&hex(&digest)), Some(digest));
        assert!(from_hex("00").is_none() && from_hex(&"+1".repeat(32)).is_none());
    }

    /// Over many draws each entry has each rank as often as chance has it: chi-squared with 19 × 19 degrees of freedom. The seeds are fixed,
    /// so this cannot fail by chance; 99.9 % of fair draws stay below the bound.
    #[test]
    fn the_draw_is_fair() {
        const ENTRIES: usize = 20;
        const DRAWS: u32 = 1_000;
        let ids: Vec<u64> = (0..ENTRIES as u64).map(|no| 254_385_310_867_492_864 + no).collect();
        let mut counts = [[0_u32; ENTRIES]; ENTRIES];
        for no in 0..DRAWS {
            let drawn = ranks(&ids, no, None);
            for (at, id) in ids.iter().enumerate() {
                counts[at][drawn.of(*id).unwrap() as usize - 1] += 1;
            }
        }
        let expected = f64::from(DRAWS) / ENTRIES as f64;
        let chi: f64 = counts.iter().flatten().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
        assert!(chi < 449.0, "{chi}");
        assert!(chi > 282.0, "too even to be chance: {chi}");
    }
}
