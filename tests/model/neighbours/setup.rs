//! What one search about two sales has: its size, which faults may happen, and which mechanism is left out.

use super::state::SALES;
use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unshared {
    /// A rebuild waits for whatever message is in a retry queue.
    OwnMessagesOnly,
    /// A rebuild searches the retry queues now and then, and does not see what goes through them between.
    RetriesWatched,
    /// A rebuild opens the sale without the quiet time.
    QuietTime,
    /// A group with an order of a locked sale is sent back as a whole, with a try counted.
    LockedApart,
    /// A consumer keeps its group until the row is free.
    LockedSentBack,
    /// A sale whose row was found locked is not tried again.
    LockForgotten,
    /// A round of P5 ends with the first sale that fails.
    RoundGoesOn,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedFault {
    /// Redis forgets the quiet sale: its ledger, and its outbox.
    RedisForgets,
    /// An order of the quiet sale meets a system error of its own.
    SystemError,
    /// A process with a group dies.
    ConsumerDies,
    /// A row of the busy sale is wrong: P5 fails with it in every round.
    RowIsWrong,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct NeighboursSetup {
    /// Requests of the quiet sale, and of the busy one.
    pub requests: [usize; SALES],
    pub faults: u8,
    pub kinds: &'static [SharedFault],
    /// A message may move on several times while the queues are searched once, and leave a retry queue in the quiet time.
    pub fast: bool,
    pub absent: Option<Unshared>,
}

impl NeighboursSetup {
    pub fn lacks(&self, mechanism: Unshared) -> bool {
        self.absent == Some(mechanism)
    }
}

impl fmt::Display for NeighboursSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests: [quiet, busy], faults, .. } = self;
        write!(f, "N={quiet} and {busy}, {faults} fault{}", if *faults == 1 { "" } else { "s" })
    }
}
