//! The counts of a sale's outcomes and journal, remembered so that a round counts only what is new (E13).
//!
//! Outcomes never change, and the system never removes one. So a piece of acceptance numbers is counted once; only its
//! holes, numbers without an outcome, are read again each time. To notice changes from outside, each round counts one
//! old piece again. Everything remembered is dropped when the highest number sank, a hole was filled, a sum changed or
//! an equation does not hold. After a crash the first round counts everything.

use super::side::{OrdersBesideOutcomes, SeriesCounted};
use crate::domain::balance::LifeCounts;
use crate::domain::ids::SaleId;
use crate::p5_reconcile::context::ReconcileError;
use crate::p5_reconcile::rows::BookRows;
use crate::p5_reconcile::rows::books::{
    Books, BooksQuery, GrantsSum, JournalSum, OrdersTurn, PIECE, Piece, Series, SeriesQuery, SeriesRead, Tally,
};
use std::collections::HashMap;

/// Runs of numbers without an outcome that are remembered of a series; beyond that the rest is counted each time.
const HOLES_MAX: usize = 256;
/// Pieces counted by one call before the snapshot.
const PIECES_MAX: u64 = 8;
/// Acceptance numbers up to which a sale is small.
const SMALL: u64 = 5 * PIECE;
/// Audits of a large sale between two counts of its orders, its payments, and the whole of its journal and grants.
const AUDITS: u32 = 100;
/// Tries of a count that turned out to be out of date.
const TRIES: u32 = 3;

/// What is remembered of one sale.
#[derive(Debug, Default)]
pub(in crate::p5_reconcile) struct CountedOutcomes {
    series: HashMap<Series, SeriesMemory>,
    flow: JournalSum,
    grants: GrantsSum,
    /// The piece that was counted again last.
    turn: usize,
    /// Audits since the orders were counted in their own table.
    audits: u32,
    orders: OrdersBesideOutcomes,
    /// The orders by state and the payments, as they were counted then.
    life: LifeCounts,
}

/// What is remembered of a series.
#[derive(Debug, Default)]
struct SeriesMemory {
    /// The sums of its pieces, from number 1 on.
    whole: Vec<Tally>,
    /// What they lack.
    holes: Vec<(u64, u64)>,
    highest: u64,
}

impl SeriesMemory {
    fn to(&self) -> u64 {
        self.whole.len() as u64 * PIECE
    }

    fn asked(&self, want: &SeriesWanted) -> SeriesQuery {
        SeriesQuery { series: want.series, after: self.to(), to: want.to, holes: self.holes.clone(), above: want.above }
    }

    /// Remembers the whole pieces at the front, as far as their holes can be remembered.
    fn take(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            let whole = piece.after == self.to() && piece.to == self.to() + PIECE;
            if !whole || self.holes.len() + piece.missing.len() > HOLES_MAX {
                return;
            }
            self.whole.push(piece.tally);
            for (first, last) in &piece.missing {
                match self.holes.last_mut() {
                    Some(hole) if hole.1 + 1 == *first => hole.1 = *last,
                    _ => self.holes.push((*first, *last)),
                }
            }
        }
    }

    /// Forgets the piece of `number` and all above it.
    fn forget_from(&mut self, number: u64) {
        let piece = (number - 1) / PIECE;
        self.whole.truncate(usize::try_from(piece).unwrap_or(0));
        let to = self.to();
        self.holes.retain(|(first, _)| *first <= to);
        if let Some(hole) = self.holes.last_mut() {
            hole.1 = hole.1.min(to);
        }
    }

    /// Whether `read` agrees with the memory; forgets what it contradicts.
    fn agrees(&mut self, read: &SeriesRead) -> bool {
        if read.highest < self.highest {
            *self = Self::default();
            return false;
        }
        self.highest = read.highest;
        if let Some(number) = read.filled {
            self.forget_from(number);
            return false;
        }
        true
    }
}

/// A series whose numbers up to `to` are to be counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SeriesWanted {
    pub series: Series,
    /// The last known number.
    pub to: u64,
    /// The highest number that had an outcome before Redis was read.
    pub landed: u64,
    /// Count also the numbers above it: the series still grows.
    pub above: bool,
}

impl SeriesWanted {
    /// Numbers up to here hardly get an outcome any more. Above, where orders land at this moment, a count made before
    /// the snapshot would be out of date in it: those numbers are counted in the snapshot, and not remembered.
    fn quiet_to(&self) -> u64 {
        let on_the_way = self.to.saturating_sub(self.landed);
        if on_the_way == 0 { self.to } else { self.landed.saturating_sub(on_the_way.min(PIECE)) }
    }
}

impl CountedOutcomes {
    /// Counts one old piece again, each time another one. If it has changed, everything is forgotten.
    pub(crate) async fn recheck_one(&mut self, books: &BookRows, sale: &SaleId) -> Result<(), ReconcileError> {
        let pieces: usize = self.series.values().map(|counted| counted.whole.len()).sum();
        if pieces == 0 {
            return Ok(());
        }
        self.turn = (self.turn + 1) % pieces;
        let mut at = self.turn;
        let mut chosen = None;
        for (series, counted) in &self.series {
            if let Some(tally) = counted.whole.get(at) {
                chosen = Some((*series, at as u64 * PIECE, *tally));
                break;
            }
            at -= counted.whole.len();
        }
        let Some((series, after, before)) = chosen else { return Ok(()) };
        let asked = SeriesQuery { series, after, to: after + PIECE, holes: Vec::new(), above: false };
        let now = books.count(sale, &asked).await?.pieces.first().map(|piece| piece.tally).unwrap_or_default();
        // The held units of a piece change with each reclaim.
        let same = (now.count, now.ordered, now.failed) == (before.count, before.ordered, before.failed);
        if !same {
            *self = Self::default();
        }
        Ok(())
    }

    /// Counts the wanted series in one snapshot with the rest of the books; `None` when there is no such sale.
    pub(super) async fn read(
        &mut self,
        books: &BookRows,
        sale: &SaleId,
        wants: &[SeriesWanted],
    ) -> Result<Option<(Books, Vec<SeriesCounted>)>, ReconcileError> {
        if self.audits == 0 {
            (self.flow, self.grants) = (JournalSum::default(), GrantsSum::default());
        }
        let counts_all = self.counts_all(wants);
        for _ in 0..TRIES {
            for want in wants {
                self.catch_up(books, sale, want).await?;
            }
            let asked: Vec<SeriesQuery> =
                wants.iter().map(|want| self.series.entry(want.series).or_default().asked(want)).collect();
            let orders = match counts_all {
                true => OrdersTurn::All { by_outcome: self.remembered_orders() },
                false => OrdersTurn::Unpaid(self.life),
            };
            let query = BooksQuery { asked: &asked, flow_before: self.flow, grants_before: self.grants, orders };
            let Some(books) = books.read(sale, query).await? else { return Ok(None) };
            let mut agrees = true;
            for (want, read) in wants.iter().zip(&books.series) {
                agrees &= self.series.entry(want.series).or_default().agrees(read);
            }
            if !agrees {
                continue;
            }
            let reads: Vec<SeriesCounted> =
                wants.iter().zip(&books.series).map(|(want, read)| self.sum(want, read)).collect();
            (self.flow, self.grants, self.life) = (books.flow_settled, books.grants_settled, books.life);
            self.compare_orders(&books, &reads);
            return Ok(Some((books, reads)));
        }
        Err(ReconcileError::Moved)
    }

    /// Makes the next audit count what grows with the sale, too.
    pub(crate) const fn count_all_next(&mut self) {
        self.audits = 0;
    }

    /// Whether to count what grows with the sale, too: always in a small sale, in a large one every 100 audits.
    fn counts_all(&mut self, wants: &[SeriesWanted]) -> bool {
        let numbers: u64 = wants.iter().map(|want| want.to).sum();
        let now = numbers <= SMALL || self.audits == 0;
        self.audits = (self.audits + 1) % AUDITS;
        now
    }

    /// Orders counted by their outcomes, of the pieces that are remembered.
    fn remembered_orders(&self) -> u64 {
        self.series.values().flat_map(|counted| &counted.whole).map(|tally| tally.orders).sum()
    }

    fn compare_orders(&mut self, books: &Books, reads: &[SeriesCounted]) {
        let Some(orders) = books.orders else { return };
        let by_outcome: i64 = reads.iter().map(|read| read.tally.ordered + read.above.ordered).sum();
        self.orders = orders.units.map_or_else(OrdersBesideOutcomes::default, |units| OrdersBesideOutcomes {
            unnumbered: units.all - by_outcome,
            without_outcome: units.without_outcome,
        });
    }

    /// How orders and outcomes differ: only a person who edits the database, or a restore of a part of it, makes a
    /// difference.
    pub(super) const fn orders_beside_outcomes(&self) -> OrdersBesideOutcomes {
        self.orders
    }

    /// Counts whole pieces in calls of their own, to keep the snapshot short.
    async fn catch_up(&mut self, books: &BookRows, sale: &SaleId, want: &SeriesWanted) -> Result<(), ReconcileError> {
        let counted = self.series.entry(want.series).or_default();
        if want.to < counted.to() {
            *counted = SeriesMemory::default();
        }
        while counted.to() + PIECE <= want.quiet_to() {
            let before = counted.to();
            let to = (before + PIECES_MAX * PIECE).min(want.quiet_to() / PIECE * PIECE);
            let asked = SeriesQuery { to, holes: Vec::new(), above: false, ..counted.asked(want) };
            counted.take(&books.count(sale, &asked).await?.pieces);
            if counted.to() < to {
                return Ok(());
            }
        }
        Ok(())
    }

    fn sum(&mut self, want: &SeriesWanted, read: &SeriesRead) -> SeriesCounted {
        let counted = self.series.entry(want.series).or_default();
        let mut sum = SeriesCounted { above: read.above, missing: counted.holes.clone(), ..SeriesCounted::default() };
        for tally in counted.whole.iter().copied().chain(read.pieces.iter().map(|piece| piece.tally)) {
            sum.tally += tally;
        }
        sum.missing.extend(read.pieces.iter().flat_map(|piece| &piece.missing));
        let quiet = read.pieces.iter().take_while(|piece| piece.to <= want.quiet_to()).count();
        counted.take(&read.pieces[..quiet]);
        sum
    }
}

#[cfg(test)]
mod tests;
