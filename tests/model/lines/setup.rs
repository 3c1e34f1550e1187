//! What one search about a line has: its size, which faults may happen, and which mechanism is left out.

use super::state::ENTRIES;
use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlined {
    /// The request id is not written before the purchase: each try has a new one.
    IdWritten,
    /// P2 had too few units: the request id is cleared, and the next try has a new one.
    IdKept,
    /// A buyer whose entry has a request id may still leave.
    InHandStays,
    /// Who left meanwhile is given a request id, and offered.
    LeftNotOffered,
    /// The process that takes a click judges by its memory of the sale; the script does not read the door.
    DoorInScript,
    /// Entries are taken as soon as the database says so, whatever Redis' door says.
    DoorFirst,
    /// The line is opened by who has shut some door, not in this version of the row.
    LineOpenedByVersion,
    /// The line is opened when Redis' door is shut, whenever that was read.
    ClockAfterRow,
    /// A line in which no entry waits is left by what was read before, without its row.
    ReopenedUnderRow,
    /// The last writer of the door in Redis is obeyed, however old what it has read.
    LaterReadingStays,
    /// A rebuild has the door that was read before it took its epoch.
    DoorOfRebuild,
    /// The boot fence does not read the door.
    DoorInFence,
    /// A leader that finds an offer lapsed gives its units back, beside the grant.
    GivenBackOnce,
    /// Units are given in the order of arrival at the process, not of ranks.
    RanksObeyed,
    /// Only OFFERED entries are compared with their orders, not those in hand.
    InHandCompared,
    /// Nor those that lapsed, and were accepted late.
    LapsedCompared,
    /// An offer without an outcome is not asked for again.
    ForgottenAskedAgain,
    /// A line is left while an offer has no outcome.
    ForgottenWaitsFor,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LineFault {
    /// The leader dies; the next one begins with what the database has.
    LeaderDies,
    /// The leader sleeps; the next one begins, and this one goes on when it wakes up, with what it has read.
    LeaderSleeps,
    /// A purchase is given up by its caller. It runs late, or never.
    CallGivenUp,
    /// The order of a request cannot be written: its outcome is FAILED.
    OrderFails,
    /// Redis forgets the sale. What was accepted is in the queue (0), or forgotten, too (1).
    RedisForgets,
    /// Redis restarts without its last writes, which were the door's. No number shows it.
    DoorForgotten,
}

/// How ranks come about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raffle,
    Waitlist,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct LinesSetup {
    pub kind: Kind,
    /// Units for sale.
    pub units: u8,
    /// Units that each entry wants, by rank; 0: there is no such entry.
    pub wants: [u8; ENTRIES],
    /// Purchases by click, of one unit.
    pub clicks: usize,
    /// A buyer may have one order, and who clicks first enters the line first, too.
    pub limited: bool,
    /// Buyers may leave.
    pub leaves: bool,
    /// Buyers may be blocked.
    pub blocks: bool,
    /// Processes beside the leader that make Redis' door follow the row.
    pub followers: usize,
    /// The purchases of a pass are called at once, not by rank.
    pub at_once: bool,
    pub faults: u8,
    pub kinds: &'static [LineFault],
    pub absent: Option<Unlined>,
}

impl LinesSetup {
    pub fn lacks(&self, mechanism: Unlined) -> bool {
        self.absent == Some(mechanism)
    }
}

impl fmt::Display for LinesSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wants, units, clicks, faults, .. } = self;
        let wants: Vec<String> = wants.iter().filter(|units| **units > 0).map(u8::to_string).collect();
        write!(f, "S={units}, entries for {}", wants.join(", "))?;
        if *clicks > 0 {
            write!(f, ", {clicks} click{}", if *clicks == 1 { "" } else { "s" })?;
        }
        write!(f, ", {faults} fault{}", if *faults == 1 { "" } else { "s" })
    }
}
