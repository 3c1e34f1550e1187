//! The database's side of an audit: a little of it is read before Redis, the rest after, in one snapshot.
//!
//! Order of the files: `side` (the side as a value, with `void_numbers`) ← `outcome_counts` (the outcomes counted, and
//! what is remembered of them) ← `read`.

mod outcome_counts;
mod read;
mod side;
mod void_numbers;

pub(super) use outcome_counts::CountedOutcomes;
pub(super) use read::{DatabaseReader, read, read_before};
pub(super) use side::{DatabaseBefore, DatabaseSide, OwnedUnitsDiffer, OwnedUnitsSide, SaleSnapshot, SeriesCounted};
#[cfg(test)]
pub(super) use {read::wanted, side::OrdersBesideOutcomes, void_numbers::VoidNumbers};
