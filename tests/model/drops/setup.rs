//! What one search about a drop has: its size, which faults may happen, and which mechanism is left out.

use super::state::REQUESTS;
use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlimited {
    /// The script counts the buyer's units of its own sale only.
    OthersCounted,
    /// The script does not see that another sale of the drop is frozen.
    OthersState,
    /// The script takes a lost buyers hash of another sale for an empty one.
    OthersMark,
    /// The transaction that writes an order counts its own sale only.
    DropGuard,
    /// A rebuild opens its sale while requests of it are on their way.
    RebuildWaits,
    /// A returned order gives its units back to the sale's limit, and not to the drop's.
    ReturnsToDrop,
    /// A sale of the drop is closed by itself.
    ClosedTogether,
    /// Limits count accounts, and the drop says persons.
    PersonCounted,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropFault {
    /// Redis comes back with an older state of both sales and of its outbox; the boot fence freezes both.
    RedisRewinds,
    /// The buyers hash of a sale is lost.
    KeyIsLost,
    /// A message is parked after its last try.
    MessageIsParked,
}

/// A request of a search: its sale, and which of the person's accounts asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    pub sale: usize,
    pub account: usize,
}

/// One search. There is one person, whose requests are all that happens; other buyers share nothing with it but the stock.
#[derive(Clone, Copy, Debug)]
pub struct DropsSetup {
    pub wishes: [Option<Wish>; REQUESTS],
    /// Of the drop, and of each of its sales.
    pub limit: u8,
    /// Orders may be cancelled, and give their units back to the limits.
    pub returns: bool,
    /// The drop may be closed.
    pub closes: bool,
    pub faults: u8,
    pub kinds: &'static [DropFault],
    pub absent: Option<Unlimited>,
}

impl DropsSetup {
    pub fn lacks(&self, mechanism: Unlimited) -> bool {
        self.absent == Some(mechanism)
    }

    /// What the limits of an account's requests count.
    pub fn key(&self, account: usize) -> usize {
        if self.lacks(Unlimited::PersonCounted) { account } else { 0 }
    }
}

impl fmt::Display for DropsSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wishes, limit, faults, .. } = self;
        let requests = wishes.iter().flatten().count();
        write!(f, "N={requests}, limit {limit}, {faults} fault{}", if *faults == 1 { "" } else { "s" })
    }
}
