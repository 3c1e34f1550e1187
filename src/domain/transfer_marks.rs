//! What two buckets remember of the transfers between them, and what the difference says (B4).
//!
//! Input: two readings of every bucket's marks, one after the other. Output: which side of which pair went back in time. Pure
//! arithmetic; a crash here leaves nothing.
//!
//! A source numbers its transfers to each target 1, 2, 3 …, and the target remembers the last number it was given, with its units.
//! The source takes first, so a target never knows more than its source, and an undecided transfer has its record in the source.
//! Both hold for each pair by itself, so a loss in one pair cannot hide behind a loss in another, as it could in a sum.

use serde::Serialize;

/// A transfer by its number in the pair, and its units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NumberedUnits {
    /// 1, 2, 3 … without gaps for each pair.
    pub number: u64,
    /// Units that it moves.
    pub units: i64,
}

/// What one bucket remembers of its transfers with one other bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PairMarks {
    /// Number of the last transfer taken from here for the other one; `None` when it cannot be read.
    pub taken: Option<u64>,
    /// The transfer that was taken from here for the other one and is not forgotten.
    pub under_way: Option<NumberedUnits>,
    /// Number of the last transfer that the other one gave to here; `None` when it cannot be read.
    pub given: Option<u64>,
    /// The last transfer that the other one gave to here; `None` when an older version gave it.
    pub last_given: Option<NumberedUnits>,
}

/// What one bucket remembers of its transfers, of one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferMarks {
    /// Epoch of the keys.
    pub epoch: u32,
    /// By shard; its own place has nothing.
    pub with: Vec<PairMarks>,
}

/// A pair of buckets of which one went back in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Rewound {
    /// The source forgot a take that its target was given: the units are in both buckets, and can be sold twice.
    Source {
        /// The shard that went back.
        source: u16,
        /// The shard that has the units.
        target: u16,
    },
    /// The target forgot a gift that its source has forgotten, too: the units are in no bucket.
    Target {
        /// The shard that gave the units.
        source: u16,
        /// The shard that went back.
        target: u16,
    },
}

impl Rewound {
    /// Whether units can be sold twice by it.
    #[must_use]
    pub const fn sells_twice(self) -> bool {
        matches!(self, Self::Source { .. })
    }

    /// Whether the pair has one of these shards.
    #[must_use]
    pub fn is_of(self, shards: &[u16]) -> bool {
        let (Self::Source { source, target } | Self::Target { source, target }) = self;
        shards.contains(&source) || shards.contains(&target)
    }
}

/// Compares each pair. `earlier` and `later` are two readings by shard, each `later` one begun after all of `earlier` were there;
/// `None` where a bucket could not be read. Transfers that happen between the readings make no difference: numbers only grow, and
/// of each pair the side is read first that has to have less.
#[must_use]
pub fn rewound(earlier: &[Option<TransferMarks>], later: &[Option<TransferMarks>], epoch: u32) -> Vec<Rewound> {
    let marks = |reading: &[Option<TransferMarks>], of: u16, with: u16| -> Option<PairMarks> {
        let marks = reading.get(usize::from(of))?.as_ref().filter(|marks| marks.epoch == epoch)?;
        marks.with.get(usize::from(with)).copied()
    };
    let shards = u16::try_from(earlier.len()).unwrap_or(u16::MAX);
    let pairs = (0..shards).flat_map(|source| (0..shards).map(move |target| (source, target)));
    let differs = |(source, target): (u16, u16)| {
        if source == target {
            return None;
        }
        let at_source = (marks(earlier, source, target)?, marks(later, source, target)?);
        let at_target = (marks(earlier, target, source)?, marks(later, target, source)?);
        if source_forgot(at_target.0, at_source.1) {
            Some(Rewound::Source { source, target })
        } else if target_forgot(at_source.0, at_target.1) {
            Some(Rewound::Target { source, target })
        } else {
            None
        }
    };
    pairs.filter_map(differs).collect()
}

/// The target was given what its source has never taken: a higher number, or other units under the same one.
fn source_forgot(target: PairMarks, source: PairMarks) -> bool {
    let taken_again = target.last_given.zip(source.under_way);
    target.given.zip(source.taken).is_some_and(|(given, taken)| given > taken)
        || taken_again.is_some_and(|(given, again)| given.number == again.number && given.units != again.units)
}

/// The source has no record any more of a transfer that the target was not given.
fn target_forgot(source: PairMarks, target: PairMarks) -> bool {
    let finished = source.under_way.map_or(source.taken, |transfer| Some(transfer.number.saturating_sub(1)));
    target.given.zip(finished).is_some_and(|(given, finished)| given < finished)
}

/// Units that left a bucket, came to no other one and wait in no record: they are in no bucket. Below zero: units came to a bucket and
/// left no other, they are in two. `between` is what all buckets sent, less what all received; `records` are the transfers that are
/// not forgotten, each with the number of the last one that its target was given from there (`None`: it cannot be read). A record
/// that was given waits for nothing but to be forgotten. All of one moment.
#[must_use]
pub fn units_missing(between: i64, records: impl IntoIterator<Item = (NumberedUnits, Option<u64>)>) -> i64 {
    let waits =
        |(record, last_given): &(NumberedUnits, Option<u64>)| last_given.is_none_or(|given| record.number > given);
    let waiting: i64 = records.into_iter().filter(waits).map(|(record, _)| record.units).sum();
    between - waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH: u32 = 3;

    fn nothing() -> [TransferMarks; 2] {
        let none = PairMarks { taken: Some(0), given: Some(0), ..PairMarks::default() };
        let marks = || TransferMarks { epoch: EPOCH, with: vec![none; 2] };
        [marks(), marks()]
    }

    fn read(marks: &[TransferMarks; 2]) -> Vec<Option<TransferMarks>> {
        marks.iter().cloned().map(Some).collect()
    }

    fn take(marks: &mut [TransferMarks; 2], units: i64) {
        let here = &mut marks[0].with[1];
        let number = here.taken.unwrap() + 1;
        (here.taken, here.under_way) = (Some(number), Some(NumberedUnits { number, units }));
    }

    fn give(marks: &mut [TransferMarks; 2]) {
        let given = marks[0].with[1].under_way.unwrap();
        let there = &mut marks[1].with[0];
        (there.given, there.last_given) = (Some(given.number), Some(given));
    }

    fn forget(marks: &mut [TransferMarks; 2]) {
        marks[0].with[1].under_way = None;
    }

    /// Every moment of three transfers, in order.
    fn moments() -> Vec<[TransferMarks; 2]> {
        let mut marks = nothing();
        let mut moments = vec![marks.clone()];
        for units in [4, 2, 7] {
            for step in [
                |marks: &mut _, units| take(marks, units),
                |marks: &mut _, _| give(marks),
                |marks: &mut _, _| forget(marks),
            ] {
                step(&mut marks, units);
                moments.push(marks.clone());
            }
        }
        moments
    }

    #[test]
    fn transfers_between_the_two_readings_are_no_difference() {
        let moments = moments();
        // Each bucket is read at its own moment, and each reading is behind the one before.
        for (a, earlier_source) in moments.iter().enumerate() {
            for (b, earlier_target) in moments.iter().enumerate() {
                for (c, later_source) in moments.iter().enumerate().skip(a.max(b)) {
                    for (d, later_target) in moments.iter().enumerate().skip(a.max(b)) {
                        let earlier = read(&[earlier_source[0].clone(), earlier_target[1].clone()]);
                        let later = read(&[later_source[0].clone(), later_target[1].clone()]);
                        assert_eq!(rewound(&earlier, &later, EPOCH), [], "{a} {b} {c} {d}");
                    }
                }
            }
        }
    }

    /// One side at each earlier moment: a difference exactly when units are in two buckets or in none.
    #[test]
    fn a_side_that_went_back_shows_exactly_when_units_are_wrong() {
        let moments = moments();
        let given = |marks: &[TransferMarks; 2]| marks[1].with[0].given.unwrap();
        let taken = |marks: &[TransferMarks; 2]| marks[0].with[1].taken.unwrap();
        for (now, marks) in moments.iter().enumerate() {
            for (then, before) in moments.iter().enumerate().take(now) {
                let source_back = read(&[before[0].clone(), marks[1].clone()]);
                let forgot = given(marks) > taken(before);
                let wanted = forgot.then_some(Rewound::Source { source: 0, target: 1 });
                assert_eq!(rewound(&source_back, &source_back, EPOCH), Vec::from_iter(wanted), "{now} to {then}");
                let target_back = read(&[marks[0].clone(), before[1].clone()]);
                let recorded = marks[0].with[1].under_way.map_or(0, |_| 1);
                let forgot = given(before) + recorded < taken(marks);
                let wanted = forgot.then_some(Rewound::Target { source: 0, target: 1 });
                assert_eq!(rewound(&target_back, &target_back, EPOCH), Vec::from_iter(wanted), "{now} to {then}");
            }
        }
    }

    #[test]
    fn a_number_taken_again_with_other_units_shows_and_with_the_same_units_the_loss_is_mended() {
        for (units, wanted) in [(5, vec![Rewound::Source { source: 0, target: 1 }]), (4, vec![])] {
            let mut marks = nothing();
            let before = marks[0].clone();
            take(&mut marks, 4);
            give(&mut marks);
            marks[0] = before;
            take(&mut marks, units);
            assert_eq!(rewound(&read(&marks), &read(&marks), EPOCH), wanted, "{units}");
        }
    }

    #[test]
    fn what_cannot_be_read_and_another_epoch_are_not_compared() {
        let mut marks = nothing();
        marks[1].with[0].given = Some(2);
        assert_eq!(rewound(&read(&marks), &read(&marks), EPOCH).len(), 1);
        assert_eq!(rewound(&read(&marks), &read(&marks), EPOCH + 1), []);
        assert_eq!(rewound(&[Some(marks[0].clone()), None], &read(&marks), EPOCH), []);
        marks[1].with[0].given = None;
        assert_eq!(rewound(&read(&marks), &read(&marks), EPOCH), []);
    }
}
