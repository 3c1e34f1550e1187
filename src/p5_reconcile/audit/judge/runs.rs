//! Runs of acceptance numbers, each with its first and last. Values only.

use crate::p5_reconcile::rows::books::Closed;
use std::collections::BTreeSet;

/// The runs as far as `last`.
pub(super) fn up_to(runs: &[(u64, u64)], last: u64) -> Vec<(u64, u64)> {
    runs.iter().filter(|(first, _)| *first <= last).map(|(first, end)| (*first, last.min(*end))).collect()
}

/// The runs without some numbers.
pub(super) fn without(runs: &[(u64, u64)], numbers: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut left = Vec::new();
    for (first, last) in runs {
        let mut next = *first;
        for number in numbers.range(first..=last) {
            if *number > next {
                left.push((next, number - 1));
            }
            next = number + 1;
        }
        if next <= *last {
            left.push((next, *last));
        }
    }
    left
}

/// The runs that no closing covers.
pub(super) fn open_gaps(gaps: &[(u64, u64)], closed: &[&Closed]) -> Vec<(u64, u64)> {
    let mut open = gaps.to_vec();
    for (from, to) in closed.iter().filter_map(|closed| closed.first.zip(closed.last)) {
        let cut = |(first, last): &(u64, u64)| {
            let before = (*first, (*last).min(from.saturating_sub(1)));
            let behind = ((*first).max(to + 1), *last);
            [before, behind].into_iter().filter(|(first, last)| first <= last).collect::<Vec<_>>()
        };
        open = open.iter().flat_map(cut).collect();
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::p5_reconcile::audit::result::numbers_in;

    fn closed(first: u64, last: u64) -> Closed {
        let code = "P5-RC4".to_owned();
        let (first, last) = (Some(first), Some(last));
        Closed { code, epoch: Some(1), shard: Some(0), first, last, units: 0, reclaimed_by: None, is_void: false }
    }

    #[test]
    fn runs_lose_what_is_known_and_what_is_closed() {
        let gaps = [(3, 9), (12, 12)];
        assert_eq!(without(&gaps, &BTreeSet::from([3, 6, 12])), [(4, 5), (7, 9)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 20)]), [(3, 4)]);
        assert_eq!(open_gaps(&gaps, &[&closed(5, 5), &closed(1, 3)]), [(4, 4), (6, 9), (12, 12)]);
        assert_eq!(numbers_in(&gaps), 8);
        assert_eq!(up_to(&gaps, 5), [(3, 5)]);
    }
}
