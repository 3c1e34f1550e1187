//! C8, acceptance numbers: 1, 2, 3 … per sale, shard and epoch. Two of one are a rewound Redis; a missing one is a loss,
//! even when everything else has forgotten the request.

use super::super::Found;
use super::super::index::Index;
use std::collections::{BTreeMap, BTreeSet};

/// Most missing numbers that are listed one by one.
const NAMED_MAX: usize = 20;

/// Checks the numbers.
pub fn check(index: &Index<'_>, found: &mut Found) {
    let mut holders: BTreeMap<(&str, u16, u64), BTreeMap<u64, &str>> = BTreeMap::new();
    for (outcome, number) in index.input.outcomes.iter().filter_map(|outcome| Some((outcome, outcome.number?))) {
        let series = holders.entry((&outcome.sale_id, outcome.shard, outcome.epoch)).or_default();
        if let Some(other) = series.insert(number, &outcome.request_id) {
            found.add(
                "C8",
                format!(
                    "sale {} shard {} epoch {}: number {number} belongs to both {other} and {}",
                    outcome.sale_id, outcome.shard, outcome.epoch, outcome.request_id
                ),
            );
        }
    }
    let mut present: BTreeMap<(&str, u16, u64), BTreeSet<u64>> =
        holders.iter().map(|(key, series)| (*key, series.keys().copied().collect())).collect();
    for open in index.undecided.values() {
        present.entry((open.sale, open.shard, open.epoch)).or_default().insert(open.number);
    }
    let mut highest: BTreeMap<(&str, u16, u64), u64> =
        present.iter().map(|(key, numbers)| (*key, numbers.last().copied().unwrap_or(0))).collect();
    for meta in &index.input.meta {
        let field = |name: &str| meta.fields.get(name).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        let top = highest.entry((&meta.sale, meta.shard, field("epoch"))).or_default();
        *top = field("number").max(*top);
    }
    for ((sale, shard, epoch), top) in highest {
        let numbers = present.get(&(sale, shard, epoch));
        let missing: Vec<u64> =
            (1..=top).filter(|number| numbers.is_none_or(|numbers| !numbers.contains(number))).collect();
        if !missing.is_empty() {
            let named: Vec<u64> = missing.iter().copied().take(NAMED_MAX).collect();
            found.add(
                "C8",
                format!(
                    "sale {sale} shard {shard} epoch {epoch}: {} numbers of {top} are missing: {named:?}",
                    missing.len()
                ),
            );
        }
    }
}
