//! The rebuild in its steps (`src/p5_reconcile/rebuild/`, `lua/rebuild_*.lua`): a new epoch, empty frozen keys, records, one
//! snapshot of the database, open. A leader may die between any two of them, or sleep while another one begins.

use crate::actions::Action;
use crate::books::{Attempt, GRANTS, Grant, Keys, Stage};
use crate::setup::{Kind, Mutation, Setup};
use crate::sheet;
use crate::state::{Entry, Kept, Meta, PAIR, REQUESTS, Request, Sale, World};

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    if !setup.reconcile {
        return;
    }
    let at_work = |k: usize| world.books.leaders[k].stage != Stage::None;
    for k in 0..PAIR {
        if at_work(k) {
            out.push(Action::Rebuild(k));
            if world.faults_left > 0 && setup.may(Kind::LeaderCrash) {
                out.push(Action::Fault(Kind::LeaderCrash, 0, k));
            }
        } else if may_begin(setup, world) {
            if !at_work(1 - k) {
                out.push(Action::Rebuild(k));
            } else if world.faults_left > 0 && setup.may(Kind::SecondLeader) {
                out.push(Action::Fault(Kind::SecondLeader, 0, k));
            }
        }
    }
    // An open sale of another epoch than the database's: a rebuild was overtaken, or the database went back.
    let compared = !setup.lacks(Mutation::EpochsNotCompared);
    if compared && world.meta.sale == Sale::Open && world.meta.epoch != world.db_epoch {
        out.push(Action::Freeze);
    }
}

/// Every request of which anything is left is decided, nothing waits anywhere, and `quiet_ms` have passed: longer than anything
/// that is in a hand stays there.
fn may_begin(setup: &Setup, world: &World) -> bool {
    let decided = (0..REQUESTS).all(|at| world.requests[at].kept.ledger == 0 || world.is_settled(at));
    let in_dlq = |r: &Request| r.mq_dlq && r.outcome == 0;
    let no_dlq = setup.lacks(Mutation::DlqNotCounted) || !world.requests.iter().any(in_dlq);
    let waits = |r: &Request| r.kept.entry != Entry::None || r.is_queued();
    let nothing_waits = setup.lacks(Mutation::RebuildInFlight) || !world.requests.iter().any(waits);
    let quiet = setup.lacks(Mutation::NoQuietTime) || !world.requests.iter().any(Request::in_hand);
    world.meta.sale != Sale::Open && decided && no_dlq && nothing_waits && quiet
}

pub fn freeze(world: &mut World) {
    world.meta.sale = Sale::Frozen;
}

pub fn go_on(setup: &Setup, world: &mut World, k: usize) {
    let attempt = world.books.leaders[k];
    let mine = world.meta.sale == Sale::Frozen && world.meta.epoch == attempt.epoch;
    let judged_first = setup.lacks(Mutation::JudgedBeforeEpoch);
    world.books.leaders[k] = match attempt.stage {
        Stage::None if judged_first => judge(setup, world, attempt),
        Stage::Judged if judged_first => number(setup, world, attempt),
        Stage::Numbered if judged_first => begin(setup, world, attempt),
        Stage::None => number(setup, world, attempt),
        Stage::Numbered => judge(setup, world, attempt),
        Stage::Judged => begin(setup, world, attempt),
        Stage::Begun if mine => load(world, attempt),
        Stage::Loaded | Stage::HalfSnapped => snapshot(setup, world, attempt),
        Stage::Snapped if mine => open(world, attempt),
        Stage::Begun | Stage::Snapped => Attempt::default(),
    };
}

/// In the database: each attempt takes an epoch of its own.
fn number(setup: &Setup, world: &mut World, attempt: Attempt) -> Attempt {
    if setup.lacks(Mutation::RebuildReusesEpoch) && world.meta.building && world.meta.epoch == world.db_epoch {
        return Attempt { stage: Stage::Begun, epoch: world.db_epoch, ..attempt };
    }
    world.db_epoch = world.db_epoch.max(world.meta.epoch) + 1;
    Attempt { stage: Stage::Numbered, epoch: world.db_epoch, ..attempt }
}

/// Which keys [`may_begin`] says that of. It counts only once the epoch is taken: an attempt before this one takes no snapshot
/// any more, so that nothing can be sold unseen but by the keys that are judged here.
fn judge(setup: &Setup, world: &World, attempt: Attempt) -> Attempt {
    if !may_begin(setup, world) {
        return Attempt::default();
    }
    Attempt { stage: Stage::Judged, judged: keys(world), ..attempt }
}

fn keys(world: &World) -> Keys {
    Keys { epoch: world.meta.epoch, building: world.meta.building }
}

/// `rebuild_begin.lua`: empty frozen keys in place of the ones that were judged, and of no others: these may have sold.
fn begin(setup: &Setup, world: &mut World, attempt: Attempt) -> Attempt {
    let judged = keys(world) == attempt.judged || setup.lacks(Mutation::BeginReplacesAny);
    let older = world.meta.sale != Sale::Open && world.meta.epoch < attempt.epoch;
    if !older || !judged {
        return Attempt::default();
    }
    world.meta = Meta { sale: Sale::Frozen, epoch: attempt.epoch, building: true, ..Meta::default() };
    for request in &mut world.requests {
        request.kept = Kept { ledger: 0, trimmed: 0, ..request.kept };
    }
    Attempt { stage: Stage::Begun, ..attempt }
}

/// `rebuild_load.lua`: buyers and records of everything that was decided.
fn load(world: &mut World, attempt: Attempt) -> Attempt {
    for request in world.requests.iter_mut().filter(|r| r.outcome > 0) {
        request.kept.ledger = request.epoch;
    }
    Attempt { stage: Stage::Loaded, ..attempt }
}

/// One transaction of the database: what may be sold, and every grant of the past marked as given. What buyers return in the epoch
/// that is being built is left out: its grants are given when the keys are open. Not if the sale is another attempt's by now: a
/// leader that slept would mark grants of keys that sell.
fn snapshot(setup: &Setup, world: &mut World, attempt: Attempt) -> Attempt {
    if world.db_epoch != attempt.epoch && !setup.lacks(Mutation::SnapshotOfAnyEpoch) {
        return Attempt::default();
    }
    let mut next = attempt;
    let is_left = |grant: &Grant| grant.is_left_open(attempt.epoch);
    if attempt.stage == Stage::Loaded {
        let rows = &world.books.rows;
        let counts = |grant: &Grant| grant.units > 0 && !is_left(grant);
        let bits = |grant: usize| u8::from(counts(&rows.grants[grant])) << grant;
        let left: i8 = rows.grants.iter().filter(|grant| is_left(grant)).map(|grant| grant.units).sum();
        next.units = (world.db_stock - sheet::held_back(world) - rows.written_off - left).max(0);
        next.inside = (0..GRANTS).map(bits).sum();
        next.stage = Stage::HalfSnapped;
        if setup.lacks(Mutation::SnapshotSplit) {
            return next;
        }
    }
    let counted = |(_, grant): &(usize, &mut Grant)| grant.units > 0 && !is_left(grant);
    for (at, grant) in world.books.rows.grants.iter_mut().enumerate().filter(counted) {
        if !grant.marked && !setup.lacks(Mutation::GrantIdsForgotten) {
            next.ids |= 1 << at;
        }
        grant.marked = true;
    }
    world.books.rows.base = next.units;
    Attempt { stage: Stage::Snapped, ..next }
}

/// `rebuild_end.lua`: stock, ids and state in one step.
fn open(world: &mut World, attempt: Attempt) -> Attempt {
    let meta = &mut world.meta;
    (meta.sale, meta.building) = (Sale::Open, false);
    meta.stock = attempt.units;
    // What a giver put into frozen keys stays in the sum, and its units are overwritten.
    meta.granted += attempt.units;
    meta.ids |= attempt.ids;
    for (at, offered) in meta.offered.iter_mut().enumerate() {
        *offered = attempt.inside >> at & 1;
    }
    world.books.off = if attempt.undone { sheet::true_difference(world) } else { 0 };
    Attempt::default()
}
