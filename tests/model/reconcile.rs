//! P5 (`src/p5_reconcile`): audit and compensation at any moment, the rebuild, and an operator who gives a parked request
//! up.

use crate::actions::Action;
use crate::persist::{land, note};
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{Entry, FAILED, Kept, Meta, REQUESTS, Request, Sale, World};
use seckill::domain::states::Event;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    for at in 0..REQUESTS {
        let request = &world.requests[at];
        let open = request.kept.ledger > 0 && request.outcome == 0;
        // A conflict is for a person; looking at it again and again changes nothing.
        if setup.reconcile && open && !request.audited && !world.number_is_taken(at) {
            out.push(Action::Audit(at));
        }
        if request.audited {
            out.push(Action::Compensate(at));
        }
        if request.is_parked() && request.outcome == 0 && world.faults_left > 0 && setup.may(Kind::GiveUp) {
            out.push(Action::Fault(Kind::GiveUp, at, 0));
        }
    }
    if setup.reconcile && may_rebuild(setup, world) {
        out.push(Action::Rebuild);
    }
}

/// Every record that is left is decided, nothing waits anywhere, and `quiet_ms` have passed: longer than anything that is in
/// a hand stays there.
fn may_rebuild(setup: &Setup, world: &World) -> bool {
    let decided = world.requests.iter().all(|r| r.kept.ledger == 0 || r.outcome > 0);
    let waits = |r: &Request| r.kept.entry != Entry::None || r.is_queued();
    let nothing_waits = setup.lacks(Mutation::RebuildInFlight) || !world.requests.iter().any(waits);
    let quiet = setup.lacks(Mutation::NoQuietTime) || !world.requests.iter().any(Request::in_hand);
    world.meta.sale != Sale::Open && decided && nothing_waits && quiet
}

/// The next epoch, from what the database decided (`decided::sellable`, `lua/rebuild_*.lua`).
pub fn rebuild(setup: &Setup, world: &mut World) {
    let ordered: i8 = world.requests.iter().map(|r| i8::try_from(r.orders).unwrap_or(i8::MAX)).sum();
    let failed = world.requests.iter().filter(|r| r.outcome == FAILED).count();
    let left = setup.stock - ordered - i8::try_from(failed).unwrap_or(i8::MAX);
    let sellable = left.min(world.db_stock).max(0);
    world.db_epoch = world.db_epoch.max(world.meta.epoch) + 1;
    world.meta = Meta { sale: Sale::Open, epoch: world.db_epoch, number: 0, stock: sellable, granted: sellable };
    for request in &mut world.requests {
        let ledger = if request.outcome > 0 { request.epoch } else { 0 };
        request.kept = Kept { ledger, ..request.kept };
    }
}

/// The ledger is read, then the DLQs, the database last.
pub fn audit(world: &mut World, at: usize) {
    world.requests[at].audited = true;
    if !world.requests[at].is_parked() {
        world.note(at, Event::OutcomeMissing);
    }
}

pub fn compensate(setup: &Setup, world: &mut World, at: usize) {
    world.requests[at].audited = false;
    let verdict = land(setup, world, at);
    note(world, at, verdict, Event::PersistFailed);
}

pub fn give_up(world: &mut World, at: usize) {
    let request = &mut world.requests[at];
    request.outcome |= FAILED;
    (request.kept.parked, request.mq_dlq) = (false, false);
    world.note(at, Event::RefusalCommitted);
}
