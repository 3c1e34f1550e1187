//! The way from the outbox to the database in two steps, for searches about the books: what can happen on it is searched by the
//! other ones.

use crate::actions::Action;
use crate::persist;
use crate::setup::{Kind, Setup};
use crate::state::{Entry, REQUESTS, World};
use seckill::domain::outcome::Verdict;
use seckill::domain::states::RequestEvent;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    for at in 0..REQUESTS {
        let request = &world.requests[at];
        if request.kept.entry == Entry::New {
            out.push(Action::Send(at));
        }
        if request.is_queued() {
            out.push(Action::Persist(at));
            if world.faults_left > 0 && setup.may(Kind::SystemError) {
                out.push(Action::Fault(Kind::SystemError, at, 0));
            }
        }
    }
}

pub fn send(world: &mut World, at: usize) {
    let request = &mut world.requests[at];
    request.kept.entry = Entry::None;
    request.queue[0] += 1;
    world.note(at, RequestEvent::Read);
    world.note(at, RequestEvent::Confirmed);
}

pub fn persist(setup: &Setup, world: &mut World, at: usize) {
    let verdict = persist::transact(setup, world, at);
    if verdict == Verdict::Conflict {
        return park(world, at);
    }
    world.requests[at].queue[0] -= 1;
    world.note(at, verdict.event());
}

/// Tried so often that it is in the MQ DLQ now.
pub fn park(world: &mut World, at: usize) {
    world.requests[at].queue[0] -= 1;
    world.requests[at].mq_dlq = true;
    world.note(at, RequestEvent::PersistSpent);
}
