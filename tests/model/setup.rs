//! What one search looks at: the size, which faults may happen, and which mechanism is left out.

use crate::state::{Meta, REQUESTS, Request, Told, World};
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
    SystemError,
    UnknownCommit,
    BrokerLosesData,
    RedisCrash,
    RedisWiped,
    GiveUp,
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
    /// All requests are one buyer's, in a sale that allows one each; else nobody compares buyers.
    pub one_buyer: bool,
    /// Redis forgot who bought (window 21): only the database's unique key is left.
    pub dedup_lost: bool,
    /// Redis may lose accepts that are on their way although the database has decided no number above what is left: the
    /// rewind that no comparison shows.
    pub blind_rewind: bool,
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
            mutation: None,
        }
    }

    pub fn lacks(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    pub fn may(&self, kind: Kind) -> bool {
        self.kinds.contains(&kind)
    }

    /// The sale is open, nobody has asked yet.
    pub fn start(&self) -> World {
        let mut requests = [Request::default(); REQUESTS];
        for request in requests.iter_mut().take(self.requests) {
            request.told = Told::Nothing;
        }
        let meta = Meta { epoch: 1, stock: self.stock, granted: self.stock, ..Meta::default() };
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
