//! What was counted of a sale's outcomes and journal, so that a round counts only what is new (E13).
//!
//! Outcomes never change and are never removed by the system, so a piece of acceptance numbers that was counted once needs no
//! second look, but for its holes: numbers without an outcome, which are asked for again each time. The rest is not believed
//! for ever: each round counts one old piece anew, and whatever looks odd (the highest number sank, a hole was filled, a sum
//! changed, an equation does not hold) throws away what was remembered. A crash forgets it all, and the first round counts everything.

use super::SaleAuditError;
use crate::domain::ids::SaleId;
use crate::store::mysql::Db;
use crate::store::mysql::books::{
    self, Books, BooksQuery, JournalSum, PIECE, Piece, Series, SeriesQuery, SeriesRead, Tally,
};
use std::collections::HashMap;

/// Runs of numbers without an outcome that are remembered in a series; with more the rest is counted each time.
const HOLES_MAX: usize = 256;
/// Pieces counted by one call before the snapshot.
const PIECES_MAX: u64 = 8;
/// Acceptance numbers up to which a sale is small.
const SMALL: u64 = 5 * PIECE;
/// Looks at a large sale between two counts of its orders.
const LOOKS: u32 = 100;
/// How often a count that turned out to be out of date is begun anew.
const TRIES: u32 = 3;

/// What is remembered of one sale.
#[derive(Debug, Default)]
pub(in super::super) struct Proof {
    series: HashMap<Series, Counted>,
    flow: JournalSum,
    turn: usize,
    /// Looks since the orders were counted in their own table.
    looks: u32,
    /// Units of orders that have no outcome.
    strangers: i64,
}

/// What is remembered of a series.
#[derive(Debug, Default)]
struct Counted {
    /// The sums of its pieces, from number 1 on.
    whole: Vec<Tally>,
    /// What they lack.
    holes: Vec<(u64, u64)>,
    highest: u64,
}

impl Counted {
    fn to(&self) -> u64 {
        self.whole.len() as u64 * PIECE
    }

    fn asked(&self, want: &Want) -> SeriesQuery {
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

    /// Forgets the piece of `number` and what lies behind it.
    fn forget_from(&mut self, number: u64) {
        let piece = (number - 1) / PIECE;
        self.whole.truncate(usize::try_from(piece).unwrap_or(0));
        let to = self.to();
        self.holes.retain(|(first, _)| *first <= to);
        if let Some(hole) = self.holes.last_mut() {
            hole.1 = hole.1.min(to);
        }
    }

    /// Whether `read` agrees with what is remembered; forgets what it contradicts.
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
pub(super) struct Want {
    pub series: Series,
    /// The last number that anybody gave.
    pub to: u64,
    /// Count what lies above it, too: it is still going on.
    pub above: bool,
}

/// A series counted.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    /// Up to the number that was asked for.
    pub tally: Tally,
    /// Above it.
    pub above: Tally,
    /// Numbers up to it without an outcome: first and last of each run.
    pub missing: Vec<(u64, u64)>,
}

impl Read {
    pub fn missing_count(&self) -> u64 {
        self.missing.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub fn lacks(&self, number: u64) -> bool {
        self.missing.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }
}

impl Proof {
    /// Counts one old piece anew, each time another one. `false`: it is not what it was, and everything is forgotten.
    pub async fn look_back(&mut self, db: &Db, sale: &SaleId) -> Result<bool, SaleAuditError> {
        let pieces: usize = self.series.values().map(|counted| counted.whole.len()).sum();
        if pieces == 0 {
            return Ok(true);
        }
        self.turn = (self.turn + 1) % pieces;
        let mut at = self.turn;
        let mut looked = None;
        for (series, counted) in &self.series {
            if let Some(tally) = counted.whole.get(at) {
                looked = Some((*series, at as u64 * PIECE, *tally));
                break;
            }
            at -= counted.whole.len();
        }
        let Some((series, after, before)) = looked else { return Ok(true) };
        let asked = SeriesQuery { series, after, to: after + PIECE, holes: Vec::new(), above: false };
        let now = books::count(db, sale, &asked).await?.pieces.first().map(|piece| piece.tally).unwrap_or_default();
        // What is held of it changes with each reclaim.
        let same = (now.count, now.ordered, now.failed) == (before.count, before.ordered, before.failed);
        if !same {
            *self = Self::default();
        }
        Ok(same)
    }

    /// Counts what is wanted, all of it in one snapshot with the rest of the books; `None` when there is no such sale.
    pub(super) async fn read(
        &mut self,
        db: &Db,
        sale: &SaleId,
        wants: &[Want],
    ) -> Result<Option<(Books, Vec<Read>)>, SaleAuditError> {
        for _ in 0..TRIES {
            for want in wants {
                self.catch_up(db, sale, want).await?;
            }
            let asked: Vec<SeriesQuery> =
                wants.iter().map(|want| self.series.entry(want.series).or_default().asked(want)).collect();
            let orders_before = self.counts_orders(wants).then(|| self.orders());
            let query = BooksQuery { asked: &asked, flow_after: self.flow.to, orders_before };
            let Some(mut books) = books::read(db, sale, query).await? else { return Ok(None) };
            let mut agrees = true;
            for (want, read) in wants.iter().zip(&books.series) {
                agrees &= self.series.entry(want.series).or_default().agrees(read);
            }
            if !agrees {
                continue;
            }
            let reads: Vec<Read> = wants.iter().zip(&books.series).map(|(want, read)| self.sum(want, read)).collect();
            self.sum_journal(&mut books);
            self.compare_orders(&books, &reads);
            return Ok(Some((books, reads)));
        }
        Err(SaleAuditError::Moved)
    }

    /// Whether it is time to count the orders in their own table: always in a small sale, now and then in a large one.
    fn counts_orders(&mut self, wants: &[Want]) -> bool {
        let numbers: u64 = wants.iter().map(|want| want.to).sum();
        let now = numbers <= SMALL || self.looks == 0;
        self.looks = (self.looks + 1) % LOOKS;
        now
    }

    /// Orders counted by their outcomes, of the pieces that are remembered.
    fn orders(&self) -> u64 {
        self.series.values().flat_map(|counted| &counted.whole).map(|tally| tally.orders).sum()
    }

    fn compare_orders(&mut self, books: &Books, reads: &[Read]) {
        let Some(orders) = books.orders else { return };
        let by_outcome: i64 = reads.iter().map(|read| read.tally.ordered + read.above.ordered).sum();
        self.strangers = orders.units.map_or(0, |units| units - by_outcome);
    }

    /// Units of orders that have no outcome: nobody but a hand in the database writes one.
    pub(super) const fn strangers(&self) -> i64 {
        self.strangers
    }

    /// Counts whole pieces in calls of their own, so that the snapshot is short.
    async fn catch_up(&mut self, db: &Db, sale: &SaleId, want: &Want) -> Result<(), SaleAuditError> {
        let counted = self.series.entry(want.series).or_default();
        if want.to < counted.to() {
            *counted = Counted::default();
        }
        while counted.to() + PIECE <= want.to {
            let before = counted.to();
            let to = (before + PIECES_MAX * PIECE).min(want.to / PIECE * PIECE);
            let asked = SeriesQuery { to, holes: Vec::new(), above: false, ..counted.asked(want) };
            counted.take(&books::count(db, sale, &asked).await?.pieces);
            if counted.to() < to {
                return Ok(());
            }
        }
        Ok(())
    }

    fn sum(&mut self, want: &Want, read: &SeriesRead) -> Read {
        let counted = self.series.entry(want.series).or_default();
        let mut sum = Read { above: read.above, missing: counted.holes.clone(), ..Read::default() };
        for tally in counted.whole.iter().copied().chain(read.pieces.iter().map(|piece| piece.tally)) {
            sum.tally += tally;
        }
        sum.missing.extend(read.pieces.iter().flat_map(|piece| &piece.missing));
        counted.take(&read.pieces);
        sum
    }

    /// The journal's sums become those from its beginning; what is old enough is remembered.
    const fn sum_journal(&mut self, books: &mut Books) {
        self.flow.to = books.flow.to;
        self.flow.sum += books.flow.sum;
        self.flow.cancelled += books.flow.cancelled;
        books.flow = JournalSum {
            to: self.flow.to,
            sum: self.flow.sum + books.flow_young.sum,
            cancelled: self.flow.cancelled + books.flow_young.cancelled,
        };
    }
}
