//! What one search covers: the size, which faults may happen, and which mechanism is left out.

use crate::books::{Books, Rows};
use crate::operator::Act;
use crate::state::{Answered, Meta, REQUESTS, Request, World};
use std::fmt;

/// When the buyer is answered, and what a crash of Redis loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sync {
    /// `appendfsync always`: on disk before anybody, relays too, sees the accept. A crash loses nothing.
    #[default]
    Always,
    /// The answer waits until the accept is durable, but relays read it before (`everysec` with WAITAOF, or WAIT).
    BeforeAnswer,
    /// `appendfsync everysec`, or a replica that lags: the answer goes out first.
    Behind,
}

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    AckBeforeConfirm,
    NoAutoclaim,
    DlqAfterDelete,
    NotMandatory,
    AckBeforeCommit,
    NoOutcomeKey,
    DeadLetterAtMostOnce,
    DlqGivesStockBack,
    ScriptNotIdempotent,
    DelConsumer,
    NoFence,
    BuyerTakenIsSuccess,
    RefusalNotRecorded,
    RebuildInFlight,
    NoQuietTime,
    FailedIsOverruled,
    HalfTransaction,
    /// A request whose number is another's stays parked.
    ConflictIsKept,
    /// `grant.lua` does not keep ids.
    GrantNotKept,
    /// A reclaim does not mark what it reclaims.
    ReclaimNotMarked,
    /// `grant.lua` gives into frozen keys.
    GrantIntoFrozen,
    /// The rebuild reads what may be sold, and marks the grants later.
    SnapshotSplit,
    /// A leader that slept takes its snapshot although the sale is another attempt's by now.
    SnapshotOfAnyEpoch,
    /// A rebuild checks whether anything is on its way, and takes its epoch later.
    JudgedBeforeEpoch,
    /// A rebuild replaces any older frozen keys, not only those that it judged.
    BeginReplacesAny,
    /// The audit takes P for a difference of sums, and does not check each grant.
    GrantsAreSummed,
    /// The audit does not check whether Redis has the grants that are marked as given.
    MarksNotCompared,
    /// A rebuild goes on in the epoch of a dead attempt.
    RebuildReusesEpoch,
    /// The ids of grants that were not given are not written into the new keys.
    GrantIdsForgotten,
    /// Who gives reads the list of grants first and the sale's epoch later.
    EpochAfterList,
    /// SOLD_OUT failures are reclaimed too.
    ReclaimAll,
    /// Failures of former epochs are neither in X nor reclaimable.
    OldFailuresLost,
    /// The audit leaves the bridge out.
    NoUnitBridge,
    /// The audit does not search for gaps.
    NoNumberEquation,
    /// The audit does not add cancelled orders above its count.
    CancelledNotAbove,
    /// The audit does not take away reclaimed failures above its count.
    ReclaimedNotAbove,
    /// A gap of an epoch that is over is held back, although the rebuild gave its unit to Redis.
    WriteOffTwice,
    /// A closed gap does not take its number.
    ClosedGapIsFree,
    /// A rebuild does not wait for what is in the MQ DLQ only.
    DlqNotCounted,
    /// No process compares the epochs of an open sale.
    EpochsNotCompared,
    /// A request's id is not searched under another number.
    KeyedByNumber,
    /// The number that a request is not decided under is not closed.
    SecondNumberStays,
    /// A message of several orders is acknowledged with the first of them.
    AckWithFirstOrder,
    /// An entry of several orders becomes a dead letter for the first of them.
    FirstOrderIsParked,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    LoseCall,
    RelayCrash,
    RelayDies,
    PublishLost,
    Returned,
    ConfirmLost,
    DoubleClaim,
    ConsumerCrash,
    /// A consumer lost its connection, and goes on with what it has.
    ConsumerCutOff,
    SystemError,
    UnknownCommit,
    BrokerLosesData,
    RedisCrash,
    RedisWiped,
    GiveUp,
    GiverCrash,
    LeaderCrash,
    /// A leader sleeps, and another one begins.
    SecondLeader,
    DatabaseGoesBack,
}

/// Everything that may go wrong, the broker's disk included, last.
pub const BROKER_TOO: &[Kind] = &[
    Kind::LoseCall,
    Kind::RelayCrash,
    Kind::RelayDies,
    Kind::PublishLost,
    Kind::Returned,
    Kind::ConfirmLost,
    Kind::DoubleClaim,
    Kind::ConsumerCrash,
    Kind::SystemError,
    Kind::UnknownCommit,
    Kind::RedisCrash,
    Kind::GiveUp,
    Kind::BrokerLosesData,
];

/// The same while every server keeps its disk.
pub const USUAL: &[Kind] = match BROKER_TOO {
    [usual @ .., Kind::BrokerLosesData] => usual,
    _ => panic!("the broker's disk is last"),
};

/// Tries before something is parked.
pub const TRIES: u8 = 2;

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub requests: usize,
    pub stock: i8,
    pub faults: u8,
    pub kinds: &'static [Kind],
    /// P5 runs: audit, compensation at any moment, rebuild.
    pub reconcile: bool,
    pub sync: Sync,
    /// All requests are one buyer's, in a sale that allows one each; else no process compares buyers.
    pub one_buyer: bool,
    /// Redis forgot who bought (window 21): only the database's unique key is left.
    pub dedup_lost: bool,
    /// Redis may lose accepts that are on their way although the database has decided no number above what is left: the
    /// rewind that no comparison shows.
    pub blind_rewind: bool,
    /// What an operator may do, and how often.
    pub acts: &'static [Act],
    pub acts_max: u8,
    /// Settled records are trimmed from the ledger.
    pub trims: bool,
    /// An audit counts Redis at one moment and the database at a later one.
    pub counts: bool,
    /// The way from the outbox to the database is two steps.
    pub short: bool,
    /// One call of the script asks for everybody who waits, and what it accepts is one entry, as in a stream.
    pub together: bool,
    /// A buyer repeats a request that Redis forgot while its message is on its way.
    pub repeats: bool,
    /// Tries of an entry by the relays before it is parked.
    pub entry_tries: u8,
    /// The same of a message by the consumers.
    pub message_tries: u8,
    pub mutation: Option<Mutation>,
}

impl Setup {
    pub const fn new(requests: usize, stock: i8, faults: u8, kinds: &'static [Kind]) -> Self {
        Self {
            requests,
            stock,
            faults,
            kinds,
            reconcile: true,
            sync: Sync::Always,
            one_buyer: false,
            dedup_lost: false,
            blind_rewind: false,
            acts: &[],
            acts_max: 0,
            trims: false,
            counts: false,
            short: false,
            together: false,
            repeats: false,
            entry_tries: TRIES,
            message_tries: TRIES,
            mutation: None,
        }
    }

    pub fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn may(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The sale is open, no buyer has asked yet.
    pub fn start(&self) -> World {
        let mut requests = [Request::default(); REQUESTS];
        for request in requests.iter_mut().take(self.requests) {
            request.answered = Answered::Nothing;
        }
        let meta = Meta { epoch: 1, stock: self.stock, granted: self.stock, ..Meta::default() };
        let rows = Rows { granted: self.stock, base: self.stock, ..Rows::default() };
        World {
            requests,
            meta,
            durable: meta,
            script_loaded: true,
            relay_lives: [true; 2],
            db_stock: self.stock,
            db_epoch: 1,
            faults_left: self.faults,
            illegal: false,
            books: Books { rows, acts_left: self.acts_max, ..Books::default() },
        }
        .in_order()
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "N={} S={}, {} fault{}",
            self.requests,
            self.stock,
            self.faults,
            if self.faults == 1 { "" } else { "s" }
        )
    }
}
