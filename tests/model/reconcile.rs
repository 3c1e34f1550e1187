//! P5 (`src/p5_reconcile`): audit and compensation at any moment, trimming, and an operator who gives a parked request up.

use crate::actions::Action;
use crate::books::Refusal;
use crate::persist::transact;
use crate::repeats;
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{Entry, FAILED, REQUESTS, World};
use seckill::domain::outcome::Verdict;
use seckill::domain::states::RequestEvent;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    for at in 0..REQUESTS {
        let request = &world.requests[at];
        // What only the MQ DLQ has is a person's to replay; that person comes some time.
        // Of a request with two numbers P5 lands the one that the ledger has.
        let elsewhere = world.is_decided_elsewhere(at)
            || (request.kept.ledger == 0 && world.other_number(at).is_some_and(|other| other.kept.ledger > 0));
        let open = (request.kept.ledger > 0 || request.mq_dlq) && request.outcome == 0 && !elsewhere;
        // On the short way it takes what is parked or lost only: the race with a message is searched elsewhere.
        let comes = setup.short && (request.kept.entry != Entry::None || request.is_queued());
        let kept = setup.lacks(Mutation::ConflictIsKept) && world.number_is_taken(at);
        if setup.reconcile && open && !request.audited && !comes && !kept {
            out.push(Action::Audit(at));
        }
        if setup.trims && request.kept.ledger > 0 && world.is_settled(at) && request.kept.entry == Entry::None {
            out.push(Action::Trim(at));
        }
        if request.audited {
            out.push(Action::Compensate(at));
        }
        if request.is_parked() && request.outcome == 0 && world.faults_left > 0 && setup.may(Kind::GiveUp) {
            out.push(Action::Fault(Kind::GiveUp, at, 0));
        }
    }
}

/// The ledger is read, then the DLQs, the database last.
pub fn audit(world: &mut World, at: usize) {
    world.requests[at].audited = true;
    if !world.requests[at].is_parked() {
        world.note(at, RequestEvent::OutcomeMissing);
    }
}

pub fn compensate(setup: &Setup, world: &mut World, at: usize) {
    world.requests[at].audited = false;
    match transact(setup, world, at) {
        // It was decided under its other number meanwhile.
        Verdict::Conflict if world.is_decided_elsewhere(at) => repeats::forgotten(world, at),
        // Another request has its number for good: it fails without one.
        Verdict::Conflict => fail(world, at, Refusal::NumberReused),
        verdict @ (Verdict::Ordered | Verdict::Already(_) | Verdict::Refused(_)) => {
            world.note(at, verdict.event());
        }
    }
}

pub fn give_up(world: &mut World, at: usize) {
    let reused = world.number_is_taken(at) || world.requests[at].decided.closed;
    fail(world, at, if reused { Refusal::NumberReused } else { Refusal::TookUnit });
    let request = &mut world.requests[at];
    (request.kept.parked, request.mq_dlq) = (false, false);
}

fn fail(world: &mut World, at: usize, refusal: Refusal) {
    world.requests[at].outcome |= FAILED;
    world.refused(at, refusal);
    world.note(at, RequestEvent::RefusalCommitted);
}

/// A settled record is only counted from here on.
pub fn trim(world: &mut World, at: usize) {
    let kept = &mut world.requests[at].kept;
    (kept.ledger, kept.trimmed) = (0, kept.ledger);
}
