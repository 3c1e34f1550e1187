//! P3 (`src/p3_relay`, `lua/relay_done.lua`, `lua/relay_park.lua`): read, publish, confirm, delete; or count, and park.

use crate::actions::Action;
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{Entry, Hand, PAIR, REQUESTS, Request, World, index};
use seckill::domain::states::RequestEvent;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    let faulty = |kind| world.faults_left > 0 && setup.may(kind);
    for k in 0..PAIR {
        if !world.relay_lives[k] {
            continue;
        }
        for at in (0..REQUESTS).filter(|at| world.leads_entry(*at)) {
            read_actions(setup, world, (at, k), out);
            let mut may = |kind, to: Action| {
                if faulty(kind) {
                    out.push(to);
                }
            };
            match world.requests[at].hand[k] {
                Hand::Ready => {
                    for kind in [Kind::PublishLost, Kind::Returned] {
                        may(kind, Action::Fault(kind, at, k));
                    }
                    out.push(Action::Publish(at, k));
                }
                Hand::Sent => {
                    may(Kind::ConfirmLost, Action::Fault(Kind::ConfirmLost, at, k));
                    out.push(Action::Confirm(at, k));
                }
                Hand::Unsent | Hand::Confirmed | Hand::Failed | Hand::Spent | Hand::Deleted => {
                    out.push(Action::Relay(at, k));
                }
                Hand::None => {}
            }
        }
        let holds = world.requests.iter().any(|r| r.hand[k] != Hand::None);
        if holds && faulty(Kind::RelayCrash) {
            out.push(Action::Fault(Kind::RelayCrash, 0, k));
        }
        if holds && faulty(Kind::RelayDies) && world.relay_lives[1 - k] {
            out.push(Action::Fault(Kind::RelayDies, 0, k));
        }
    }
}

/// New entries, own unfinished ones, and those of a relay that has them no more (XAUTOCLAIM). Taking over what the other
/// one still works on is a fault: it was asleep for longer than `claim_idle_ms`.
fn read_actions(setup: &Setup, world: &World, (at, k): (usize, usize), out: &mut Vec<Action>) {
    let request = &world.requests[at];
    if request.hand[k] != Hand::None {
        return;
    }
    match request.kept.entry {
        Entry::New => out.push(Action::Read(at, k)),
        Entry::Pending(owner) if owner == index(k) => out.push(Action::Read(at, k)),
        Entry::Pending(_) if setup.lacks(Mutation::NoAutoclaim) => {}
        Entry::Pending(_) if request.hand[1 - k] == Hand::None => out.push(Action::Read(at, k)),
        Entry::Pending(_) if world.faults_left > 0 && setup.may(Kind::DoubleClaim) => {
            out.push(Action::Fault(Kind::DoubleClaim, at, k));
        }
        Entry::Pending(_) | Entry::None | Entry::Orphan => {}
    }
}

/// Each step is one of the entry: with several orders in it, of all of them.
pub fn read(world: &mut World, at: usize, k: usize) {
    for at in world.orders_of_entry(at) {
        world.requests[at].kept.entry = Entry::Pending(index(k));
        world.requests[at].hand[k] = Hand::Ready;
        world.note(at, RequestEvent::Read);
    }
}

/// What became of a message that was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Stored,
    Lost,
    /// No queue for it: the broker returns it if it is `mandatory`, and confirms it either way.
    Returned,
}

pub fn publish(setup: &Setup, world: &mut World, (at, k): (usize, usize), sent: Sent) {
    for at in world.orders_of_entry(at) {
        publish_one(setup, &mut world.requests[at], k, sent);
    }
}

fn publish_one(setup: &Setup, request: &mut Request, k: usize, sent: Sent) {
    request.hand[k] = match sent {
        Sent::Stored => Hand::Sent,
        Sent::Lost => Hand::Unsent,
        Sent::Returned if setup.lacks(Mutation::NotMandatory) => Hand::Confirmed,
        Sent::Returned => Hand::Failed,
    };
    if sent == Sent::Stored {
        request.queue[0] += 1;
    }
    if setup.lacks(Mutation::AckBeforeConfirm) {
        request.kept.entry = Entry::None;
    }
}

pub fn confirm(world: &mut World, at: usize, k: usize) {
    for at in world.orders_of_entry(at) {
        world.requests[at].hand[k] = Hand::Confirmed;
    }
}

/// The confirm does not come in time: the connection is given up, and a confirm that comes later counts for nothing.
pub fn fail(world: &mut World, at: usize, k: usize) {
    for at in world.orders_of_entry(at) {
        world.requests[at].hand[k] = Hand::Failed;
    }
}

/// The next thing the relay does by itself with what it holds.
pub fn go_on(setup: &Setup, world: &mut World, at: usize, k: usize) {
    for (place, order) in world.orders_of_entry(at).into_iter().enumerate() {
        let only_the_first = place > 0 && setup.lacks(Mutation::FirstOrderIsParked);
        go_on_with(setup, world, (order, k), only_the_first);
    }
}

fn go_on_with(setup: &Setup, world: &mut World, (at, k): (usize, usize), left_out: bool) {
    match world.requests[at].hand[k] {
        Hand::Unsent => world.requests[at].hand[k] = Hand::Failed,
        Hand::Confirmed => {
            let request = &mut world.requests[at];
            (request.kept.entry, request.kept.attempts) = (Entry::None, 0);
            request.hand[k] = Hand::None;
            world.note(at, RequestEvent::Confirmed);
        }
        Hand::Failed => count(setup, world, at, k),
        Hand::Spent => park(setup, world, (at, k), left_out),
        Hand::Deleted => {
            world.requests[at].kept.parked = true;
            world.requests[at].hand[k] = Hand::None;
        }
        Hand::None | Hand::Ready | Hand::Sent => {}
    }
}

fn count(setup: &Setup, world: &mut World, at: usize, k: usize) {
    let request = &mut world.requests[at];
    request.kept.attempts = setup.entry_tries.min(request.kept.attempts + 1);
    if request.kept.attempts < setup.entry_tries {
        request.hand[k] = Hand::Ready;
        world.note(at, RequestEvent::PublishFailed);
    } else {
        request.hand[k] = Hand::Spent;
    }
}

/// `relay_park.lua`: only what is pending for this very relay. Each order of an entry gets a record of its own.
fn park(setup: &Setup, world: &mut World, (at, k): (usize, usize), left_out: bool) {
    let request = &mut world.requests[at];
    request.hand[k] = Hand::None;
    if request.kept.entry != Entry::Pending(index(k)) {
        return;
    }
    (request.kept.entry, request.kept.attempts) = (Entry::None, 0);
    if setup.lacks(Mutation::DlqAfterDelete) {
        request.hand[k] = Hand::Deleted;
    } else {
        request.kept.parked = !left_out;
    }
    if setup.lacks(Mutation::DlqGivesStockBack) {
        world.meta.stock += 1;
    }
    world.note(at, RequestEvent::PublishSpent);
}

/// The relay's memory is gone; what it had read stays pending for its name.
pub fn forget(setup: &Setup, world: &mut World, k: usize) {
    for request in &mut world.requests {
        request.hand[k] = Hand::None;
        if setup.lacks(Mutation::DelConsumer) && request.kept.entry == Entry::Pending(index(k)) {
            request.kept.entry = Entry::Orphan;
        }
    }
}
