//! One moment of a sale on two servers: the bucket of each, its replica, the database, and what two processes have in memory.

use super::setup::{Absent, TransfersSetup};
use seckill::domain::transfer_marks::{NumberedUnits, PairMarks, Rewound, TransferMarks, rewound, units_missing};

/// Processes that move units: the api, and P5 or a second api.
pub const MOVERS: usize = 2;
/// What a rebuild counts: epochs begin with it.
const FIRST_EPOCH: u8 = 1;

/// A transfer out of a bucket to the other one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Moved {
    pub source: usize,
    pub number: u8,
    pub units: i8,
    pub epoch: u8,
}

/// The keys of the sale on one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Keys {
    pub epoch: u8,
    pub frozen: bool,
    pub stock: i8,
    /// The acceptance number: each request is for one unit.
    pub accepted: i8,
    /// Units that ever left, and that ever came.
    pub sent: i8,
    pub received: i8,
    /// `to:`, the number of the last transfer to the other bucket.
    pub taken: u8,
    /// Its record, number and units, until it is forgotten.
    pub record: Option<(u8, i8)>,
    /// `from:`, the number of the last transfer that was given here.
    pub given: u8,
    /// `got:`, its number and units.
    pub got: Option<(u8, i8)>,
}

/// What a process that moves units has in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Mover {
    #[default]
    Idle,
    /// It has a record to give.
    Gives(Moved),
    /// The target has answered; the record is forgotten next.
    Forgets(Moved),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TwoBuckets {
    pub keys: [Keys; 2],
    /// What takes over when the server dies.
    pub replicas: [Keys; 2],
    /// The server was replaced: it sells nothing before the fence has compared.
    pub fenced: [bool; 2],
    /// The highest number of this epoch in the database, by shard.
    pub landed: [i8; 2],
    /// Units that the database has left.
    pub units_left: i8,
    pub epoch: u8,
    pub movers: [Mover; MOVERS],
    pub late: Mover,
    pub faults_left: u8,
    /// A server went back in time.
    pub went_back: bool,
    /// A request was accepted for which the database had no unit: it failed there.
    pub too_many: bool,
    /// A record is gone whose units its target does not have.
    pub forgot_too_early: bool,
    pub happened: Option<Happened>,
}

/// What the last step was, where that leaves no other trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Happened {
    FenceFroze,
    AuditFroze,
    FoundRecord,
    GivenBefore,
    Behind,
    OldEpoch,
}

impl TwoBuckets {
    pub fn start(setup: &TransfersSetup) -> Self {
        let keys = shares(setup.stock, FIRST_EPOCH);
        Self {
            keys,
            replicas: keys,
            fenced: [false; 2],
            landed: [0; 2],
            units_left: setup.stock,
            epoch: FIRST_EPOCH,
            movers: [Mover::Idle; MOVERS],
            late: Mover::Idle,
            faults_left: setup.faults,
            went_back: false,
            too_many: false,
            forgot_too_early: false,
            happened: None,
        }
    }

    /// Which process is which does not matter, nor which shard.
    pub fn in_order(mut self) -> Self {
        self.movers.sort_unstable();
        let mut mirrored = self;
        mirrored.keys.swap(0, 1);
        mirrored.replicas.swap(0, 1);
        mirrored.fenced.swap(0, 1);
        mirrored.landed.swap(0, 1);
        for mover in mirrored.movers.iter_mut().chain([&mut mirrored.late]) {
            if let Mover::Gives(moved) | Mover::Forgets(moved) = mover {
                moved.source = 1 - moved.source;
            }
        }
        mirrored.movers.sort_unstable();
        self.min(mirrored)
    }

    pub fn sells(&self, shard: usize) -> bool {
        !self.fenced[shard] && !self.keys[shard].frozen && self.keys[shard].epoch == self.epoch
    }

    pub fn is_open(&self) -> bool {
        self.sells(0) && self.sells(1)
    }

    /// Units of a record that its target was not given.
    pub fn under_way(&self, source: usize) -> i8 {
        let target = &self.keys[1 - source];
        let open = |(number, units): (u8, i8)| {
            number > target.given || (number == target.given && target.got != Some((number, units)))
        };
        self.keys[source].record.filter(|record| open(*record)).map_or(0, |(_, units)| units)
    }

    /// The truth, which no process sees: each unit is in a bucket, in a record that is not given, or with a buyer.
    pub fn units_are_right(&self) -> bool {
        let in_redis: i8 = (0..2).map(|shard| self.keys[shard].stock + self.under_way(shard)).sum();
        in_redis == self.units_left
    }

    /// What the product says of the pairs, read at one moment.
    pub fn rewound(&self, setup: &TransfersSetup) -> Vec<Rewound> {
        let marks: Vec<_> = (0..2).map(|shard| Some(marks(&self.keys[shard], shard))).collect();
        let found = rewound(&marks, &marks, u32::from(self.epoch));
        if setup.lacks(Absent::EachPairByItself) { Vec::new() } else { found }
    }

    /// Units that left a bucket, less those that came to one.
    fn between(&self) -> i8 {
        self.keys.iter().map(|keys| keys.sent - keys.received).sum()
    }

    /// What the audit's sums say of the transfers, read at one moment.
    fn lost(&self, setup: &TransfersSetup) -> i64 {
        if setup.lacks(Absent::Sums) {
            return 0;
        }
        let records = (0..2).filter_map(|source| {
            let (number, units) = self.keys[source].record?;
            let all = setup.lacks(Absent::GivenRecordsLeftOut);
            let last_given = (!all).then(|| self.keys[1 - source].given.into());
            Some((NumberedUnits { number: number.into(), units: units.into() }, last_given))
        });
        let lost = units_missing(self.between().into(), records);
        if setup.lacks(Absent::EachPairByItself) { lost.max(0) } else { lost }
    }

    /// Whether an audit of this moment has a finding, by the keys and the database alone.
    pub fn has_finding(&self, setup: &TransfersSetup) -> bool {
        let in_redis: i8 = self.keys.iter().map(|keys| keys.stock).sum();
        let balanced = self.units_left == in_redis + self.between();
        !balanced || self.lost(setup) != 0 || !self.rewound(setup).is_empty()
    }

    /// What makes the audit freeze the sale.
    pub fn sells_twice(&self, setup: &TransfersSetup) -> bool {
        self.lost(setup) < 0 || self.rewound(setup).iter().any(|pair| pair.sells_twice())
    }
}

/// The keys that a rebuild writes, and those of the start.
pub fn shares(units: i8, epoch: u8) -> [Keys; 2] {
    let first = (units + 1) / 2;
    [first, units - first].map(|stock| Keys { epoch, stock, ..Keys::default() })
}

fn marks(keys: &Keys, shard: usize) -> TransferMarks {
    let of = |(number, units): (u8, i8)| NumberedUnits { number: number.into(), units: units.into() };
    let with_other = PairMarks {
        taken: Some(keys.taken.into()),
        under_way: keys.record.map(of),
        given: Some(keys.given.into()),
        last_given: keys.got.map(of),
    };
    let none = PairMarks { taken: Some(0), given: Some(0), ..PairMarks::default() };
    let with = if shard == 0 { vec![none, with_other] } else { vec![with_other, none] };
    TransferMarks { epoch: keys.epoch.into(), with }
}
