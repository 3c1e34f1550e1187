//! What can happen next to two buckets. Every step is one script of Redis, one transaction, or one comparison of the fence or of P5.

use super::setup::{Absent, TransferFault, TransfersSetup};
use super::state::{Happened, MOVERS, Moved, Mover, TwoBuckets, shares};

/// A step; the numbers are a shard or a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransferStep {
    /// Accepted, and written at once: what can happen in between is searched elsewhere.
    Buy(usize),
    /// A process takes units out of this bucket, at least this number, or finds the record that is there.
    Take(usize, usize, i8),
    Give(usize),
    Forget(usize),
    LateCall,
    Replicate(usize),
    Fence(usize),
    AuditFreezes,
    Rebuild,
    /// Costs one of the faults that are left.
    Fault(TransferFault, usize),
}

/// Whether nothing happens any more unless a buyer or a fault does something.
pub fn is_quiet(setup: &TransfersSetup, buckets: &TwoBuckets) -> bool {
    let mut out = Vec::new();
    by_itself(setup, buckets, &mut out);
    out.is_empty()
}

/// What the system does. P5 gives the records that it finds.
pub fn by_itself(setup: &TransfersSetup, buckets: &TwoBuckets, out: &mut Vec<TransferStep>) {
    for shard in 0..2 {
        if buckets.fenced[shard] {
            out.push(TransferStep::Fence(shard));
        }
        let finds = buckets.keys[shard].record.is_some() && !target_refuses(setup, buckets, shard);
        let finds = finds && !setup.lacks(Absent::RecordsAreFinished);
        if let Some(mover) = free(setup, buckets).filter(|_| finds && buckets.is_open()) {
            out.push(TransferStep::Take(mover, shard, 0));
        }
    }
    for mover in 0..MOVERS {
        if let Some(shard) = waits_for(setup, buckets, mover) {
            out.push(TransferStep::Replicate(shard));
            continue;
        }
        match buckets.movers[mover] {
            Mover::Idle => {}
            Mover::Gives(_) => out.push(TransferStep::Give(mover)),
            Mover::Forgets(_) => out.push(TransferStep::Forget(mover)),
        }
    }
    if buckets.is_open() && buckets.sells_twice(setup) {
        out.push(TransferStep::AuditFreezes);
    }
    let frozen = buckets.keys.iter().any(|keys| keys.frozen || keys.epoch != buckets.epoch);
    if frozen && buckets.fenced == [false; 2] {
        out.push(TransferStep::Rebuild);
    }
}

/// What happens only when a buyer comes, when a server sends its writes on, or when a forgotten call arrives.
pub fn by_chance(setup: &TransfersSetup, buckets: &TwoBuckets, out: &mut Vec<TransferStep>) {
    for shard in 0..2 {
        let keys = &buckets.keys[shard];
        if buckets.sells(shard) && keys.stock > 0 {
            out.push(TransferStep::Buy(shard));
            // Bucket by bucket: the other one has too few, for whatever a buyer wants.
            if let Some(mover) = free(setup, buckets).filter(|_| keys.record.is_none() && keys.taken < setup.takes) {
                out.extend((1..=2.min(keys.stock)).map(|wanted| TransferStep::Take(mover, shard, wanted)));
            }
        }
        if buckets.replicas[shard] != *keys {
            out.push(TransferStep::Replicate(shard));
        }
    }
    if buckets.late != Mover::Idle {
        out.push(TransferStep::LateCall);
    }
}

pub fn faults(setup: &TransfersSetup, buckets: &TwoBuckets, out: &mut Vec<TransferStep>) {
    if buckets.faults_left == 0 {
        return;
    }
    let mut fault = |kind, at| {
        if setup.may(kind) {
            out.push(TransferStep::Fault(kind, at));
        }
    };
    for shard in 0..2 {
        // An accept that is lost and that no number shows is searched elsewhere: here only transfers are.
        let (now, then) = (&buckets.keys[shard], &buckets.replicas[shard]);
        let known = then.epoch != now.epoch || then.accepted == now.accepted || then.accepted < buckets.landed[shard];
        let may = !setup.calm || buckets.movers == [Mover::Idle; MOVERS];
        if known && may && then != now {
            fault(TransferFault::FailsOver, shard);
        }
    }
    if buckets.is_open() {
        fault(TransferFault::OperatorRebuilds, 0);
    }
    for mover in (0..MOVERS).filter(|mover| buckets.movers[*mover] != Mover::Idle) {
        fault(TransferFault::MoverDies, mover);
        let sent = waits_for(setup, buckets, mover).is_none();
        let gift = matches!(buckets.movers[mover], Mover::Gives(_));
        if buckets.late == Mover::Idle && sent && (gift || !setup.calm) {
            fault(TransferFault::CallIsLate, mover);
        }
    }
}

pub fn apply(setup: &TransfersSetup, buckets: &mut TwoBuckets, step: TransferStep) {
    buckets.happened = None;
    match step {
        TransferStep::Buy(shard) => {
            buckets.keys[shard].stock -= 1;
            buckets.keys[shard].accepted += 1;
            buckets.landed[shard] += 1;
            buckets.too_many |= buckets.units_left == 0;
            buckets.units_left = (buckets.units_left - 1).max(0);
            if setup.waits {
                buckets.replicas[shard] = buckets.keys[shard];
            }
        }
        TransferStep::Take(mover, source, wanted) => take(setup, buckets, (mover, source), wanted),
        TransferStep::Give(mover) => {
            let held = std::mem::take(&mut buckets.movers[mover]);
            if let Mover::Gives(moved) = held
                && give(setup, buckets, moved)
            {
                buckets.movers[mover] = Mover::Forgets(moved);
            }
        }
        TransferStep::Forget(mover) => {
            let held = std::mem::take(&mut buckets.movers[mover]);
            run(setup, buckets, held);
        }
        TransferStep::LateCall => {
            let held = std::mem::take(&mut buckets.late);
            run(setup, buckets, held);
        }
        TransferStep::Replicate(shard) => buckets.replicas[shard] = buckets.keys[shard],
        TransferStep::Fence(shard) => fence(setup, buckets, shard),
        TransferStep::AuditFreezes => {
            buckets.happened = Some(Happened::AuditFroze);
            freeze(buckets);
        }
        TransferStep::Rebuild => {
            buckets.epoch += 1;
            buckets.keys = shares(buckets.units_left, buckets.epoch);
            buckets.landed = [0; 2];
            (buckets.forgot_too_early, buckets.went_back) = (false, false);
        }
        TransferStep::Fault(kind, at) => {
            buckets.faults_left -= 1;
            match kind {
                TransferFault::FailsOver => {
                    // Who waits for this server's replicas gets no answer, and goes no further.
                    for mover in 0..MOVERS {
                        if waits_for(setup, buckets, mover) == Some(at) {
                            buckets.movers[mover] = Mover::Idle;
                        }
                    }
                    buckets.keys[at] = buckets.replicas[at];
                    buckets.fenced[at] = true;
                    buckets.went_back = true;
                }
                TransferFault::MoverDies => buckets.movers[at] = Mover::Idle,
                TransferFault::OperatorRebuilds => freeze(buckets),
                TransferFault::CallIsLate => buckets.late = std::mem::take(&mut buckets.movers[at]),
            }
        }
    }
}

fn free(setup: &TransfersSetup, buckets: &TwoBuckets) -> Option<usize> {
    buckets.movers.iter().take(setup.movers).position(|mover| *mover == Mover::Idle)
}

/// Whether the record of a source stays where it is, because its target was given a later one.
fn target_refuses(setup: &TransfersSetup, buckets: &TwoBuckets, source: usize) -> bool {
    let mut tried = *buckets;
    let record = buckets.keys[source].record;
    let moved = record.map(|(number, units)| Moved { source, number, units, epoch: buckets.epoch });
    moved.is_some_and(|moved| !give(setup, &mut tried, moved))
}

/// The shard whose replica has not got yet what a process's next step relies on.
fn waits_for(setup: &TransfersSetup, buckets: &TwoBuckets, mover: usize) -> Option<usize> {
    let (shard, has, unless) = match buckets.movers[mover] {
        Mover::Idle => return None,
        Mover::Gives(moved) => {
            let source = &buckets.replicas[moved.source];
            (moved.source, source.epoch == moved.epoch && source.taken >= moved.number, Absent::TakeReplicated)
        }
        Mover::Forgets(moved) => {
            let target = &buckets.replicas[1 - moved.source];
            (1 - moved.source, target.epoch == moved.epoch && target.given >= moved.number, Absent::GiftReplicated)
        }
    };
    (setup.waits && !has && !setup.lacks(unless)).then_some(shard)
}

/// `transfer_take.lua`.
fn take(setup: &TransfersSetup, buckets: &mut TwoBuckets, (mover, source): (usize, usize), wanted: i8) {
    if let Some((number, units)) = buckets.keys[source].record {
        buckets.happened = Some(Happened::FoundRecord);
        buckets.movers[mover] = Mover::Gives(Moved { source, number, units, epoch: buckets.epoch });
        return;
    }
    let keys = &mut buckets.keys[source];
    let units = keys.stock.min(wanted.max((keys.stock + 1) / 2));
    let moved = Moved { source, number: keys.taken + 1, units, epoch: keys.epoch };
    keys.taken += 1;
    keys.sent += units;
    keys.stock -= units;
    if !setup.lacks(Absent::Record) {
        keys.record = Some((moved.number, units));
    }
    buckets.movers[mover] = Mover::Gives(moved);
}

/// `transfer_give.lua`. Whether the record may be forgotten now.
fn give(setup: &TransfersSetup, buckets: &mut TwoBuckets, moved: Moved) -> bool {
    let keys = &mut buckets.keys[1 - moved.source];
    if keys.epoch != moved.epoch {
        buckets.happened = Some(Happened::OldEpoch);
        if !setup.lacks(Absent::EpochOfGift) {
            return false;
        }
    }
    if keys.frozen {
        return false;
    }
    let before = moved.number <= keys.given && !setup.lacks(Absent::GivenOnce);
    if before {
        let other = keys.got.is_some_and(|(number, units)| number == moved.number && units != moved.units);
        let behind = moved.number < keys.given || (other && !setup.lacks(Absent::UnitsRemembered));
        buckets.happened = Some(if behind { Happened::Behind } else { Happened::GivenBefore });
        return !behind;
    }
    keys.stock += moved.units;
    keys.received += moved.units;
    keys.given = moved.number;
    keys.got = Some((moved.number, moved.units));
    true
}

/// What a process sends on, or what arrives late: a give, or `transfer_forget.lua`.
fn run(setup: &TransfersSetup, buckets: &mut TwoBuckets, held: Mover) {
    match held {
        Mover::Idle => {}
        Mover::Gives(moved) => {
            give(setup, buckets, moved);
        }
        Mover::Forgets(moved) => {
            let under_way = buckets.under_way(moved.source);
            let keys = &mut buckets.keys[moved.source];
            let that = keys.record == Some((moved.number, moved.units)) && keys.epoch == moved.epoch;
            if that || setup.lacks(Absent::ForgetsThatRecord) {
                buckets.forgot_too_early |= under_way > 0;
                keys.record = None;
            }
        }
    }
}

/// Compares numbers and pairs, and lets the script be loaded again.
fn fence(setup: &TransfersSetup, buckets: &mut TwoBuckets, shard: usize) {
    buckets.fenced[shard] = false;
    let keys = &buckets.keys[shard];
    let behind = keys.epoch != buckets.epoch || keys.accepted < buckets.landed[shard];
    let pairs = !setup.lacks(Absent::PairsInFence) && !buckets.rewound(setup).is_empty();
    if behind || pairs {
        buckets.happened = Some(Happened::FenceFroze);
        freeze(buckets);
    }
}

/// On both shards; keys of a later epoch sell on.
fn freeze(buckets: &mut TwoBuckets) {
    let epoch = buckets.epoch;
    for keys in buckets.keys.iter_mut().filter(|keys| keys.epoch <= epoch) {
        keys.frozen = true;
    }
}
