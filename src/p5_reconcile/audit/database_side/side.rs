//! The database's side of an audit as a value. Nothing here reads or judges.

use super::void_numbers::VoidNumbers;
use crate::domain::ids::{DropId, RequestId};
use crate::domain::ledger::LedgerRecord;
use crate::lines::rows::DifferingEntry;
use crate::orders::rows::outcomes::RequestOutcome;
use crate::orders::rows::purchases::{Differing, OwnedUnits};
use crate::p5_reconcile::audit::result::numbers_in;
use crate::p5_reconcile::rows::books::{Books, KnownSeries, Series, Tally};
use crate::sales::rows::grants::GrantMark;
use std::collections::{BTreeMap, HashMap};

/// What the database had before Redis was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatabaseBefore {
    /// The sale's numbers.
    pub known: Vec<KnownSeries>,
    /// Grants of the epoch that Redis was known to have.
    pub marked: Vec<GrantMark>,
    /// Units of the withdrawals that had ended.
    pub withdrawn: i64,
}

/// What the database has of the sale.
#[derive(Debug, Clone, Default)]
pub(crate) struct DatabaseSide {
    pub before: DatabaseBefore,
    /// The books; `None`: there is no such sale.
    pub snapshot: Option<SaleSnapshot>,
    /// Outcomes of open requests by id, read after the snapshot; `None`: not read.
    pub decided: Option<HashMap<RequestId, RequestOutcome>>,
    /// How long ago the first number above each run of missing ones got its outcome, milliseconds; `None`: not read.
    pub ages: Option<BTreeMap<Series, Vec<Option<i64>>>>,
    /// The grants of the epoch and the open withdrawals, read after those of Redis; `None`: not read, or too many to be compared one by one.
    pub grants: Option<Vec<GrantMark>>,
    /// The units that buyers own.
    pub owned: OwnedUnitsSide,
}

/// The database at one moment.
#[derive(Debug, Clone)]
pub(crate) struct SaleSnapshot {
    pub books: Books,
    /// The outcomes of each known series, counted.
    pub series: BTreeMap<Series, SeriesCounted>,
    pub orders: OrdersBesideOutcomes,
    pub void: VoidNumbers,
}

/// The orders compared with the outcomes that have a number, when they were counted in their own table last. Units.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OrdersBesideOutcomes {
    /// Orders less those that a number's outcome stands for.
    pub unnumbered: i64,
    /// Orders without any outcome.
    pub without_outcome: i64,
}

/// The counts of a series.
#[derive(Debug, Clone, Default)]
pub(crate) struct SeriesCounted {
    /// Up to the wanted number.
    pub tally: Tally,
    pub above: Tally,
    /// Numbers up to it without an outcome: first and last of each run, in order.
    pub missing: Vec<(u64, u64)>,
}

/// The units that buyers own by `purchases` and `drop_purchases`, and the entries of a line, against their orders.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnedUnitsSide {
    /// How they differ, limit by limit; none: all agree, or nothing was compared yet.
    pub differ: Vec<OwnedUnitsDiffer>,
    /// Entries of the sale's line that contradict their orders.
    pub entries: Vec<DifferingEntry>,
    /// Whether this audit compared them; else it is what an earlier one found.
    pub is_new: bool,
}

/// How the units that buyers own differ from their orders.
#[derive(Debug, Clone)]
pub(crate) struct OwnedUnitsDiffer {
    /// The limit of this drop; `None`: that of the sale.
    pub of_drop: Option<DropId>,
    pub units: OwnedUnits,
    /// Some of the buyers.
    pub buyers: Vec<Differing>,
}

impl SeriesCounted {
    pub(crate) fn missing_count(&self) -> u64 {
        numbers_in(&self.missing)
    }

    /// How many of these numbers lack their outcome.
    pub(crate) fn lacking_of(&self, runs: &[(u64, u64)]) -> u64 {
        let common = |(a, b): (&(u64, u64), &(u64, u64))| (a.1.min(b.1) + 1).saturating_sub(a.0.max(b.0));
        runs.iter().flat_map(|run| self.missing.iter().map(move |missing| (run, missing))).map(common).sum()
    }

    /// Whether the number has no outcome, or is above all that were counted.
    pub(crate) fn is_without(&self, number: u64) -> bool {
        self.lacks(number) || number > self.tally.count + self.missing_count()
    }

    pub(crate) fn lacks(&self, number: u64) -> bool {
        let at = self.missing.partition_point(|(_, last)| *last < number);
        self.missing.get(at).is_some_and(|(first, _)| *first <= number)
    }
}

impl SaleSnapshot {
    /// Whether the number lacks its outcome. One that was closed as void is a gap; its request is decided.
    pub(crate) fn lacks(&self, series: Series, number: u64) -> bool {
        self.series.get(&series).is_some_and(|counted| counted.lacks(number)) && !self.void.has(series, number)
    }

    /// Whether the database has forgotten a settled request of a shard. Without the shard's counters it is judged by
    /// number alone: only those are held that the database lacks, in whatever epoch.
    pub(crate) fn has_forgotten(&self, series: Series, record: &LedgerRecord, has_counters: bool) -> bool {
        let of = Series { epoch: record.epoch, shard: series.shard };
        if has_counters {
            return of == series && self.lacks(of, record.number);
        }
        self.series.get(&of).is_none_or(|counted| counted.is_without(record.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_known_gaps_are_counted_where_they_still_lack_their_outcome() {
        let counted = SeriesCounted { missing: vec![(3, 9), (20, 20)], ..SeriesCounted::default() };
        assert_eq!(counted.lacking_of(&[(1, 4), (8, 12), (20, 25)]), 5);
        assert_eq!(counted.lacking_of(&[]), 0);
        let lacks: Vec<u64> = (1..=25).filter(|number| counted.lacks(*number)).collect();
        assert_eq!(lacks, [3, 4, 5, 6, 7, 8, 9, 20]);
    }
}
