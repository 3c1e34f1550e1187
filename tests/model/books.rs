//! What the books add to a state: grants, who gives them, who rebuilds, what a backup holds, and what an audit has counted.
//! The spec is "The books" in `docs/architecture.md`; the letters D, O, R, U, P, X and W are its own.

use crate::state::{Request, World};
use seckill::domain::outcome::FailReason;

/// Grants that fit into a state.
pub const GRANTS: usize = 2;

/// Why a request failed, as far as the books care.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Refusal {
    #[default]
    None,
    /// GIVEN_UP, DUPLICATE_BUYER, LIMIT_EXCEEDED: its unit is there and not offered again (X).
    TookUnit,
    /// SOLD_OUT: the database never had its unit.
    NoUnit,
    /// Its number belongs to another request; its row has no number.
    NumberReused,
}

impl From<FailReason> for Refusal {
    fn from(reason: FailReason) -> Self {
        match reason.code() {
            "SOLD_OUT" | "UNKNOWN_SALE" => Self::NoUnit,
            "NUMBER_REUSED" => Self::NumberReused,
            _ => Self::TookUnit,
        }
    }
}

/// A row of `stock_grants`: a top-up, a cancel or a reclaim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Grant {
    /// 0: there is no such row.
    pub units: i8,
    /// The epoch whose keys are to have it.
    pub epoch: u8,
    /// Marked as given.
    pub marked: bool,
    /// The unit of a cancelled order.
    pub returned: bool,
}

impl Grant {
    /// Whether the rebuild of this epoch leaves it to be given when the keys are open.
    pub const fn is_left_open(&self, epoch: u8) -> bool {
        self.returned && self.epoch == epoch && !self.marked
    }
}

/// The sale's rows in the database, but for `sales.stock`, `sales.epoch` and what each request has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rows {
    /// `sales.granted`.
    pub granted: i8,
    /// The grant that this epoch began with: the first one, or `rebuild-<epoch>`.
    pub base: i8,
    pub grants: [Grant; GRANTS],
    /// W.
    pub written_off: i8,
}

/// A request's rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decided {
    pub refusal: Refusal,
    pub cancelled: bool,
    pub reclaimed: bool,
    /// A person has closed the gap of its number.
    pub closed: bool,
}

/// What a backup has of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SavedRequest {
    pub outcome: u8,
    pub orders: u8,
    pub decided: Decided,
}

/// What a backup has of the sale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SavedSale {
    pub rows: Rows,
    pub stock: i8,
    pub epoch: u8,
}

/// A process that carries a grant from the database to Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Giver {
    #[default]
    Idle,
    /// It has read the grant and the sale's epoch, maybe long ago.
    Read { grant: u8, units: i8, epoch: u8 },
    /// Redis has the grant, the mark is due.
    Gave(u8),
}

/// The step that a rebuild has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    #[default]
    None,
    Numbered,
    /// Nothing of the sale is on its way.
    Judged,
    Begun,
    Loaded,
    /// Mutation: the sellable units are read, the grants are not marked yet.
    HalfSnapped,
    Snapped,
}

/// Which keys Redis has of a sale: none are of epoch 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keys {
    pub epoch: u8,
    pub building: bool,
}

/// A rebuild under way, in the memory of a leader. The bits are grants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    pub stage: Stage,
    /// The one to build.
    pub epoch: u8,
    /// The keys that were judged.
    pub judged: Keys,
    pub units: i8,
    /// Grants to be written into the new keys with no units.
    pub ids: u8,
    /// Grants whose units are among [`Self::units`]. No process knows this; a law needs it.
    pub inside: u8,
    /// The database went back after the snapshot. No process knows this; a law needs it.
    pub undone: bool,
}

/// What an audit has counted in Redis, maybe long before it reads the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Count {
    pub epoch: u8,
    pub number: u8,
    pub stock: i8,
    pub granted: i8,
    /// Grants whose ids Redis has, as bits.
    pub ids: u8,
    /// Grants that were marked as given before Redis was counted, as bits.
    pub marked: u8,
    /// The highest number that the database had decided before Redis was counted.
    pub highest: u8,
}

/// All of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Books {
    pub rows: Rows,
    pub backup: Option<SavedSale>,
    /// Things an operator may still do.
    pub acts_left: u8,
    /// Grants that were ever made: a row that vanished leaves its id in Redis.
    pub made: u8,
    pub giver: Giver,
    pub leaders: [Attempt; 2],
    pub count: Option<Count>,
    /// By how much the bridge must be off after what the servers have lost. No process knows this; a law needs it.
    pub off: i8,
    /// A server has lost data at some time.
    pub lossy: bool,
    /// A request was refused for lack of units, and no server had ever lost anything.
    pub unfounded: bool,
}

impl World {
    /// Whether Redis sells, in the epoch of the database.
    pub fn is_whole(&self) -> bool {
        self.meta.sale == crate::state::Sale::Open && self.meta.epoch == self.db_epoch
    }

    /// A server has lost data: from here on the bridge is off by what is off now.
    pub fn lost_data(&mut self) {
        self.books.lossy = true;
        self.books.count = None;
        self.books.off = crate::sheet::true_difference(self);
    }

    /// A request that took no unit, or one that is another's, is refused: that takes back what Redis gave too much.
    pub fn refused(&mut self, at: usize, refusal: Refusal) {
        self.requests[at].decided.refusal = refusal;
        if matches!(refusal, Refusal::NoUnit | Refusal::NumberReused) && !self.requests[at].decided.closed {
            self.books.off += 1;
            self.books.unfounded |= !self.books.lossy;
        }
    }
}

impl Request {
    /// Whether its outcome holds its acceptance number. Closing a gap takes the number too.
    pub fn holds_number(&self) -> bool {
        (self.outcome > 0 && self.decided.refusal != Refusal::NumberReused) || self.decided.closed
    }

    /// Units of orders that stand.
    pub fn units_ordered(&self) -> i8 {
        let orders = i8::try_from(self.orders).unwrap_or(i8::MAX);
        if self.decided.cancelled { orders - 1 } else { orders }
    }

    /// Whether its unit is in X: failed, took a unit, not offered again.
    pub fn is_held_back(&self) -> bool {
        self.decided.refusal == Refusal::TookUnit && !self.decided.reclaimed
    }
}
