//! What one search about two buckets has: its size, which faults may happen, and which mechanism is left out.

use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The fence compares acceptance numbers only.
    PairsInFence,
    /// Fence and audit see only units that are in no bucket, and only as a sum over all buckets.
    EachPairByItself,
    /// The audit sums nothing: it compares pairs only.
    Sums,
    /// The sums count a record that was given as if its units were still on their way.
    GivenRecordsLeftOut,
    /// P5 does not give the records that it finds.
    RecordsAreFinished,
    /// The target keeps no number: a repeat gives the units again.
    GivenOnce,
    /// The target keeps the number of the last gift, and not its units.
    UnitsRemembered,
    /// A source keeps no record: what was taken is only in the mind of the process.
    Record,
    /// Whatever record there is for the target is forgotten.
    ForgetsThatRecord,
    /// `transfer_give` does not compare the epoch.
    EpochOfGift,
    /// Units are given before the replicas have the take.
    TakeReplicated,
    /// A record is forgotten before the replicas have the gift.
    GiftReplicated,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferFault {
    /// A replica that is behind takes the place of a server.
    FailsOver,
    /// A process that moves units dies and forgets what it did.
    MoverDies,
    /// A call that its caller gave up runs late, or never.
    CallIsLate,
    /// A person has the sale rebuilt.
    OperatorRebuilds,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct TransfersSetup {
    /// Units of the sale, split over both buckets.
    pub stock: i8,
    /// Whether a process waits for the replicas after each write (`redis.wait_replicas` = all of them).
    pub waits: bool,
    /// Servers are replaced only while no process is between two steps; a gift may be on its way.
    pub calm: bool,
    /// Processes that move units, and transfers out of a bucket between two rebuilds, at most.
    pub movers: usize,
    pub takes: u8,
    pub faults: u8,
    pub kinds: &'static [TransferFault],
    pub absent: Option<Absent>,
}

impl TransfersSetup {
    pub fn lacks(&self, mechanism: Absent) -> bool {
        self.absent == Some(mechanism)
    }

    pub fn may(&self, kind: TransferFault) -> bool {
        self.kinds.contains(&kind)
    }
}

impl fmt::Display for TransfersSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { stock, movers, takes, faults, .. } = self;
        let movers = if *movers == 1 { "1 process".to_owned() } else { format!("{movers} processes") };
        let plural = |count: u8| if count == 1 { "" } else { "s" };
        write!(f, "S={stock}, {movers}, {takes} transfer{}, {faults} fault{}", plural(*takes), plural(*faults))
    }
}
