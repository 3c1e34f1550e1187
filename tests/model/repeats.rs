//! A request that Redis forgot while its message was on its way, and that its buyer repeats: one id, two numbers. The second one is
//! a [`Request`](crate::state::Request) of its own; what the database keys by the id asks for both. P5 closes the number that the
//! request is not decided under, and removes the dead letter of the other one (`src/p5_reconcile/compensation/void.rs`,
//! `src/p5_reconcile/dlq/mq_cleanup.rs`).

use crate::actions::Action;
use crate::books::GRANTS;
use crate::operator;
use crate::setup::{Mutation, Setup};
use crate::sheet;
use crate::state::{Answered, REQUESTS, Request, World};

impl World {
    /// The same request under its other number.
    pub fn other_number(&self, at: usize) -> Option<&Request> {
        let of = |other: &usize| *other != at && self.requests[at].repeated && self.requests[*other].repeated;
        (0..REQUESTS).find(of).map(|other| &self.requests[other])
    }

    /// Whether the request has its outcome, and has it under another number.
    pub fn is_decided_elsewhere(&self, at: usize) -> bool {
        self.other_number(at).is_some_and(|other| other.outcome > 0)
    }

    /// Whether nothing is to be learned of this number any more: it is decided, or closed and its request is decided.
    pub fn is_settled(&self, at: usize) -> bool {
        let request = &self.requests[at];
        request.outcome > 0 || (request.decided.closed && self.is_decided_elsewhere(at))
    }
}

/// Whether a buyer may repeat what Redis has forgotten and something else has: once in a search.
pub fn may_repeat(setup: &Setup, world: &World) -> bool {
    setup.repeats && free(world).is_some() && !world.requests.iter().any(|request| request.repeated)
}

fn free(world: &World) -> Option<usize> {
    let unused = |request: &Request| request.answered == Answered::Absent && request.journey.is_none();
    world.requests.iter().position(unused)
}

/// The place of what the script is about to accept: that of the request, or where Redis gives it another number one of its own.
pub fn place(setup: &Setup, world: &mut World, at: usize) -> usize {
    let request = &world.requests[at];
    let forgotten = request.kept.ledger == 0 && request.survives();
    let same = (request.epoch, request.number) == (world.meta.epoch, world.meta.number + 1);
    if !setup.repeats || !forgotten {
        return at;
    }
    if same {
        // It is what is on its way already, with the unit that Redis had given away twice.
        world.books.off += 1;
        return at;
    }
    let Some(second) = free(world) else { return at };
    (world.requests[at].repeated, world.requests[at].answered) = (true, Answered::Absent);
    (world.requests[second].repeated, world.requests[second].answered) = (true, Answered::Unknown);
    second
}

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    if !setup.reconcile {
        return;
    }
    for at in (0..REQUESTS).filter(|at| world.is_decided_elsewhere(*at)) {
        let request = &world.requests[at];
        let open = request.kept.ledger > 0 && request.outcome == 0 && !request.decided.closed;
        if open && !setup.lacks(Mutation::SecondNumberStays) {
            out.push(Action::CloseNumber(at));
        }
        let settled = world.number_is_taken(at) || world.is_settled(at);
        if request.mq_dlq && settled {
            out.push(Action::CleanDlq(at));
        }
    }
}

/// The number is closed; its unit is a grant where the books balance, else it is held back.
pub fn close_number(setup: &Setup, world: &mut World, at: usize) {
    let offered = sheet::balances(setup, world, sheet::read(world)) && usize::from(world.books.made) < GRANTS;
    world.requests[at].decided.closed = true;
    if offered {
        operator::grant(world, 1);
    } else {
        world.books.rows.written_off += 1;
    }
}

pub fn clean_dlq(world: &mut World, at: usize) {
    world.requests[at].mq_dlq = false;
    forgotten(world, at);
}

/// When nothing is left of the number that a request is not decided under, its unit is no order's: Redis had it back already.
pub fn forgotten(world: &mut World, at: usize) {
    let request = &world.requests[at];
    if !request.survives() && !request.decided.closed {
        world.books.off += 1;
    }
}
