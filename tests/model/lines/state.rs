//! One moment of a line.

use super::setup::{Kind, LinesSetup};

/// Entries that fit into a state.
pub const ENTRIES: usize = 3;
/// Request ids of one entry: a second one only where a mechanism is left out.
pub const IDS: usize = 2;
/// All of them.
pub const EACH_ID: [u8; IDS] = [0, 1];
pub const CLICKS: usize = 3;
/// Requests of entries, and then clicks.
pub const REQUESTS: usize = ENTRIES * IDS + CLICKS;

/// The request of this entry with this id.
pub const fn of_entry(at: usize, id: u8) -> usize {
    at * IDS + id as usize
}

pub const fn of_click(click: usize) -> usize {
    ENTRIES * IDS + click
}

/// Where an entry is: `domain::line::EntryState`, and not entered yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Place {
    #[default]
    Absent,
    Waiting,
    Offered,
    Taken,
    Lapsed,
    Left,
}

/// One entry; its rank is its place among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Entry {
    pub place: Place,
    /// Its request id: it is in hand.
    pub id: Option<u8>,
    /// Ids that were given to it and taken away again.
    pub cleared: u8,
    pub is_blocked: bool,
}

/// Where a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Bought {
    /// Redis does not have it: not accepted yet, or forgotten.
    #[default]
    Nowhere,
    /// Accepted, on its way to the database.
    Accepted,
    Unpaid,
    Paid,
    /// Its order ended, and Redis does not have its units yet.
    Returning,
    Returned,
}

impl Bought {
    /// The database has its outcome.
    pub fn is_decided(self) -> bool {
        !matches!(self, Self::Nowhere | Self::Accepted)
    }

    /// Units of it are its buyer's, or reserved for him.
    pub fn is_alive(self) -> bool {
        matches!(self, Self::Accepted | Self::Unpaid | Self::Paid)
    }
}

/// What the row of the sale says of the door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Row {
    pub by_line: bool,
    /// Goes up with each change.
    pub version: u8,
}

/// A door as it was read, and Redis' clock before that; of the keys: when what they have was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Door {
    pub by_line: bool,
    pub at: u8,
}

/// `sale_lines.state`. CLOSED and SEALED are steps of a draw of their own; nothing is given meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// A raffle takes entries, or is not drawn yet.
    Entering,
    Drawn,
    Awaited,
    Open,
}

/// What Redis has of the sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sells {
    Open,
    /// Redis restarted: it has the keys, and no script.
    Restarted,
    /// The boot fence has compared; it has read this door.
    Compared(Door),
    /// Frozen, or without its keys.
    Lost,
    /// A rebuild has its epoch; its keys will begin with this door.
    Numbered(bool),
    /// Its keys are there, frozen.
    Loaded,
    /// And it has read the door that they open with.
    Read(Door),
}

impl Sells {
    /// A door that is set now stays in the keys.
    pub fn has_keys(self) -> bool {
        !matches!(self, Self::Lost | Self::Numbered(_))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Keys {
    pub sells: Sells,
    pub units: u8,
    pub door: Door,
    /// The door before the last writes, while they were doors only.
    pub before: Option<Door>,
}

/// What P2 said to a purchase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    Accepted,
    Limit,
    /// Too few units.
    Short,
}

/// How far a leader is. Sets of entries are bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Leader {
    Gone,
    Idle,
    /// It has counted the units in Redis.
    Counted(u8),
    /// It has read who is next.
    Chosen(u8),
    /// Their request ids are written; it buys for them.
    Asking(u8),
    /// P2 has answered for one of them.
    Answered {
        rest: u8,
        at: usize,
        id: u8,
        answer: Answer,
    },
    /// It has read that no entry waits.
    Reopens,
    /// It has Redis' clock, and reads the row next; `seen`: the version in which it has read before that the line is to be opened.
    Clocked {
        at: u8,
        seen: Option<u8>,
    },
    /// It has read the row, Redis gets the door. Whether the line may be opened then, in this version of the row.
    SetsDoor {
        door: Door,
        version: u8,
        opens: bool,
    },
    /// Redis sells, and its door is shut; the row was in this version.
    DoorIsShut(u8),
}

/// Another process that makes Redis' door follow the row, whenever it is slow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Follower {
    #[default]
    Idle,
    Clocked(u8),
    SetsDoor(Door),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LineMoment {
    pub entries: [Entry; ENTRIES],
    pub requests: [Bought; REQUESTS],
    /// Requests of entries whose caller gave a call up that has not run.
    pub late: [bool; REQUESTS],
    pub line: Line,
    pub row: Row,
    pub keys: Keys,
    /// The leader, and one that sleeps.
    pub leaders: [Leader; 2],
    pub followers: [Follower; 2],
    /// Mutations: `by_line` as a process remembers it.
    pub remembered: bool,
    pub faults_left: u8,
    /// Redis forgot what it had accepted.
    pub forgot: bool,
    /// A click was accepted while an entry waited.
    pub jumped: bool,
    /// An entry was given units before a lower rank that waits and wants no more.
    pub out_of_order: bool,
    /// And not enough were left for all such ranks.
    pub too_few_left: bool,
}

impl LineMoment {
    pub fn start(setup: &LinesSetup) -> Self {
        let is_raffle = setup.kind == Kind::Raffle;
        let entries = setup.wants.map(|wants| {
            let place = if is_raffle && wants > 0 { Place::Waiting } else { Place::Absent };
            Entry { place, ..Entry::default() }
        });
        let door = Door { by_line: is_raffle, at: 0 };
        Self {
            entries,
            requests: [Bought::Nowhere; REQUESTS],
            late: [false; REQUESTS],
            line: if is_raffle { Line::Entering } else { Line::Awaited },
            row: Row { by_line: is_raffle, version: 0 },
            keys: Keys { sells: Sells::Open, units: setup.units, door, before: None },
            leaders: [Leader::Idle, Leader::Gone],
            followers: [Follower::Idle; 2],
            remembered: is_raffle,
            faults_left: setup.faults,
            forgot: false,
            jumped: false,
            out_of_order: false,
            too_few_left: false,
        }
    }

    /// The request in whose id the entry is in hand.
    pub fn request(&self, at: usize) -> Bought {
        self.entries[at].id.map_or(Bought::Nowhere, |id| self.requests[of_entry(at, id)])
    }

    /// It waits for units: never offered, or offered and forgotten by Redis.
    pub fn is_without(&self, at: usize) -> bool {
        match self.entries[at].place {
            Place::Waiting => true,
            Place::Offered => self.request(at) == Bought::Nowhere,
            Place::Absent | Place::Taken | Place::Lapsed | Place::Left => false,
        }
    }

    /// Its buyer may still be given units, as far as the database knows.
    pub fn keeps_the_door(&self, at: usize) -> bool {
        let has_no_outcome = self.entries[at].place == Place::Offered && !self.request(at).is_decided();
        self.entries[at].place == Place::Waiting || has_no_outcome
    }
}
