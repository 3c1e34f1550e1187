//! What a person does to the books: top-up, cancel, reclaim, write-off of a gap. Each is one transaction of the database, and all
//! but the last leave a grant. Also two things that just happen: a backup, and an audit's count.

use crate::actions::Action;
use crate::books::{GRANTS, Grant, Refusal, SavedRequest, SavedSale, Stage};
use crate::setup::{Kind, Mutation, Setup};
use crate::sheet;
use crate::state::{ORDER, REQUESTS, Request, SENT, World};

/// What a person may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    TopUp,
    Cancel,
    Reclaim,
    /// Closes a gap that the audit has found.
    WriteOff,
}

/// Nothing of this happens by itself: a state in which only this is left is quiet.
pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    let may = |act| setup.acts.contains(&act) && world.books.acts_left > 0;
    let room = usize::from(world.books.made) < GRANTS;
    if may(Act::TopUp) && room {
        out.push(Action::Act(Act::TopUp, 0));
    }
    if may(Act::Reclaim) && room && reclaimable(setup, world) > 0 {
        out.push(Action::Act(Act::Reclaim, 0));
    }
    for at in 0..REQUESTS {
        let request = &world.requests[at];
        if may(Act::Cancel) && room && request.outcome == ORDER && !request.decided.cancelled {
            out.push(Action::Act(Act::Cancel, at));
        }
        if may(Act::WriteOff) && sheet::is_visible_gap(world, request) {
            out.push(Action::Act(Act::WriteOff, at));
        }
    }
    if setup.counts && world.books.count.is_none() && world.is_whole() {
        out.push(Action::Count);
    }
    if setup.may(Kind::DatabaseGoesBack) && world.books.backup.is_none() {
        out.push(Action::Backup);
    }
    if setup.may(Kind::DatabaseGoesBack) && world.faults_left > 0 && world.books.backup.is_some() {
        out.push(Action::Fault(Kind::DatabaseGoesBack, 0, 0));
    }
}

pub fn act(setup: &Setup, world: &mut World, act: Act, at: usize) {
    world.books.acts_left -= 1;
    match act {
        Act::TopUp => {
            world.db_stock += 1;
            world.books.rows.granted += 1;
            grant(world, 1);
        }
        Act::Cancel => {
            world.db_stock += 1;
            world.requests[at].decided.cancelled = true;
            grant(world, 1).returned = true;
        }
        Act::Reclaim => {
            let units = reclaimable(setup, world);
            let epoch = world.db_epoch;
            for request in world.requests.iter_mut().filter(|r| may_reclaim(setup, r, epoch)) {
                request.decided.reclaimed = !setup.lacks(Mutation::ReclaimNotMarked);
            }
            world.books.rows.written_off = 0;
            grant(world, units);
        }
        Act::WriteOff => {
            // The unit of an epoch that is over came back with the rebuild: that counted what the database has.
            let held = world.requests[at].epoch == world.db_epoch || setup.lacks(Mutation::WriteOffTwice);
            world.books.rows.written_off += i8::from(held);
            world.requests[at].decided.closed = true;
        }
    }
}

fn may_reclaim(setup: &Setup, request: &Request, epoch: u8) -> bool {
    let too =
        setup.lacks(Mutation::ReclaimAll) && request.decided.refusal == Refusal::NoUnit && !request.decided.reclaimed;
    let of_epoch = !setup.lacks(Mutation::OldFailuresLost) || request.epoch == epoch;
    (request.is_held_back() && of_epoch) || too
}

fn reclaimable(setup: &Setup, world: &World) -> i8 {
    sheet::count(world, |r| may_reclaim(setup, r, world.db_epoch)) + world.books.rows.written_off
}

pub fn grant(world: &mut World, units: i8) -> &mut Grant {
    let slot = usize::from(world.books.made);
    world.books.made += 1;
    world.books.rows.grants[slot] = Grant { units, epoch: world.db_epoch, ..Grant::default() };
    &mut world.books.rows.grants[slot]
}

pub fn count(world: &mut World) {
    world.books.count = Some(sheet::read(world));
}

pub fn back_up(world: &mut World) {
    let World { db_stock: stock, db_epoch: epoch, .. } = *world;
    world.books.backup = Some(SavedSale { rows: world.books.rows, stock, epoch });
    for request in &mut world.requests {
        let Request { outcome, orders, decided, .. } = *request;
        request.saved = SavedRequest { outcome, orders, decided };
    }
}

/// The database comes back as it was when the backup was taken.
pub fn database_goes_back(world: &mut World) {
    let Some(SavedSale { rows, stock, epoch }) = world.books.backup else { return };
    (world.books.rows, world.db_stock, world.db_epoch) = (rows, stock, epoch);
    for request in &mut world.requests {
        let SavedRequest { outcome, orders, decided } = request.saved;
        if request.outcome != outcome {
            // The table knows nothing of an outcome that is undone: it is on its way again.
            request.journey = Some(SENT);
        }
        (request.outcome, request.orders, request.decided) = (outcome, orders, decided);
    }
    for leader in &mut world.books.leaders {
        leader.undone = leader.stage == Stage::Snapped;
    }
    world.lost_data();
}
