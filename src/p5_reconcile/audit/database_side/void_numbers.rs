//! Void numbers: Redis forgot that it had accepted a request, and accepted it again under another number
//! before the database had it. The request is decided once; the number that it is not decided under is closed by P5.
//! Values only.

use crate::p5_reconcile::rows::books::{Books, Series};
use std::collections::BTreeSet;

/// The numbers that P5 has closed as void.
#[derive(Debug, Clone, Default)]
pub(crate) struct VoidNumbers(BTreeSet<(Series, u64)>);

impl VoidNumbers {
    pub(crate) fn of(books: &Books) -> Self {
        let void = books.closed.iter().filter(|closed| closed.is_void);
        Self(
            void.filter_map(|closed| {
                let series = Series { epoch: closed.epoch?, shard: closed.shard? };
                Some((series, closed.first?))
            })
            .collect(),
        )
    }

    pub(crate) fn has(&self, series: Series, number: u64) -> bool {
        self.0.contains(&(series, number))
    }

    /// How many void numbers of the series are among these.
    pub(crate) fn count(&self, series: Series, is_among: impl Fn(u64) -> bool) -> u64 {
        self.0.range((series, 0)..=(series, u64::MAX)).filter(|(_, number)| is_among(*number)).count() as u64
    }
}
