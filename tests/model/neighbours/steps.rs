//! What can happen next to two sales that share their queues.

use super::setup::{NeighboursSetup, SharedFault, Unshared};
use super::state::{ATTEMPTS_MAX, BUSY, Bought, CHECKS, CONSUMERS, Check, Lock, Place, QUIET, REQUESTS, SALES, Shared};

/// A step; the numbers are a sale, then a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedStep {
    Buy(usize, usize),
    Send(usize, usize),
    /// To a consumer.
    Deliver(usize, usize, u8),
    /// A consumer writes its group.
    Write(u8),
    Expire(usize, usize),
    /// Another session takes the busy sale's row, or releases it.
    RowIsHeld,
    RowIsFree,
    /// The time is over for which a locked sale is left alone.
    MomentPasses,
    Compensate(usize, usize),
    /// The rebuild of the quiet sale makes its next check.
    Checks,
    /// Costs one of the faults that are left.
    Fault(SharedFault, u8),
}

/// Whether nothing happens any more, although another session holds the busy sale's row for ever: a rebuild that only ever finds
/// again what it waits for gets no further.
pub fn is_quiet(setup: &NeighboursSetup, shared: &Shared) -> bool {
    let mut out = Vec::new();
    by_itself(setup, shared, &mut out);
    out.retain(|step| *step != SharedStep::Checks);
    out.is_empty() && (shared.is_open || (shared.check == 0 && !may_rebuild(setup, shared)))
}

/// Whether a rebuild that begins now comes to its end, if nothing else happens.
fn may_rebuild(setup: &NeighboursSetup, shared: &Shared) -> bool {
    if shared.row_is_wrong && setup.lacks(Unshared::RoundGoesOn) {
        return false;
    }
    let mut tried = *shared;
    begin_again(&mut tried);
    for _ in CHECKS {
        check(setup, &mut tried);
    }
    tried.is_open
}

pub fn by_itself(setup: &NeighboursSetup, shared: &Shared, out: &mut Vec<SharedStep>) {
    let is_quiet_time = CHECKS[usize::from(shared.check)] == Check::Quiet;
    let searching = !is_quiet_time && shared.check > 0;
    for sale in 0..SALES {
        for at in 0..REQUESTS {
            let request = &shared.requests[sale][at];
            // A search takes a moment: too little for two moves, unless this is about that.
            if searching && request.has_moved && !setup.fast {
                continue;
            }
            match request.place {
                Place::Outbox => out.push(SharedStep::Send(sale, at)),
                Place::Queue => {
                    let free = (0..CONSUMERS).filter(|consumer| takes(setup, shared, *consumer));
                    out.extend(free.map(|consumer| SharedStep::Deliver(sale, at, consumer)));
                }
                // What waits for a row that stays locked goes round and round: that is no progress.
                // Nor does a pause end in the quiet time, unless this is about that.
                Place::Retry if sale == QUIET && is_quiet_time && !setup.fast => {}
                Place::Retry if sale == QUIET || !circles(shared) => out.push(SharedStep::Expire(sale, at)),
                Place::Nowhere | Place::Hand(_) | Place::Retry | Place::Parked | Place::Decided => {}
            }
            let undecided = request.is_known && request.place != Place::Decided;
            if sale == QUIET && undecided && (!shared.is_open || request.place == Place::Parked) {
                out.push(SharedStep::Compensate(sale, at));
            }
        }
    }
    for consumer in 0..CONSUMERS {
        if shared.group(consumer).next().is_some() && !waits_for_row(setup, shared, consumer) {
            out.push(SharedStep::Write(consumer));
        }
    }
    if shared.lock == Lock::LeftAlone && !shared.is_locked && !setup.lacks(Unshared::LockForgotten) {
        out.push(SharedStep::MomentPasses);
    }
    let round_ends = shared.row_is_wrong && setup.lacks(Unshared::RoundGoesOn);
    if !shared.is_open && !round_ends && (shared.check > 0 || passes(setup, shared)) {
        out.push(SharedStep::Checks);
    }
}

/// What is up to buyers and other sessions, and the circle of what waits for a locked row.
pub fn by_chance(shared: &Shared, out: &mut Vec<SharedStep>) {
    for sale in 0..SALES {
        for at in 0..REQUESTS {
            let request = &shared.requests[sale][at];
            if request.is_wanted && (sale == BUSY || shared.is_open) {
                out.push(SharedStep::Buy(sale, at));
            }
            if sale == BUSY && circles(shared) && request.place == Place::Retry && !request.has_moved {
                out.push(SharedStep::Expire(sale, at));
            }
        }
    }
    out.push(if shared.is_locked { SharedStep::RowIsFree } else { SharedStep::RowIsHeld });
    if shared.lock == Lock::LeftAlone && shared.is_locked {
        out.push(SharedStep::MomentPasses);
    }
}

pub fn faults(setup: &NeighboursSetup, shared: &Shared, out: &mut Vec<SharedStep>) {
    let mut fault = |happens: bool, kind, consumer| {
        if happens && shared.faults_left > 0 && setup.kinds.contains(&kind) {
            out.push(SharedStep::Fault(kind, consumer));
        }
    };
    fault(shared.is_open && shared.of(QUIET).any(|request| request.is_known), SharedFault::RedisForgets, 0);
    fault(!shared.row_is_wrong, SharedFault::RowIsWrong, 0);
    for consumer in 0..CONSUMERS {
        let moved = !setup.fast && shared.group(consumer).any(|(_, request)| request.has_moved);
        fault(!moved && shared.group(consumer).next().is_some(), SharedFault::ConsumerDies, consumer);
        let of_quiet = shared.group(consumer).any(|(sale, _)| sale == QUIET);
        fault(!moved && of_quiet, SharedFault::SystemError, consumer);
    }
}

/// Whether an order of the busy sale would only be sent back once more.
fn circles(shared: &Shared) -> bool {
    shared.is_locked || shared.lock == Lock::LeftAlone
}

fn takes(setup: &NeighboursSetup, shared: &Shared, consumer: u8) -> bool {
    let first = consumer == 0 || shared.group(0).next().is_some();
    first && !waits_for_row(setup, shared, consumer)
}

/// Mutation: the whole group waits for a row.
fn waits_for_row(setup: &NeighboursSetup, shared: &Shared, consumer: u8) -> bool {
    let waits = setup.lacks(Unshared::LockedSentBack) && shared.is_locked;
    waits && shared.group(consumer).any(|(sale, _)| sale == BUSY)
}

/// Whether the next check of the rebuild finds nothing to wait for.
fn passes(setup: &NeighboursSetup, shared: &Shared) -> bool {
    let mine = |place: Place| shared.of(QUIET).any(|request| request.place == place);
    let anyones = |place: Place| shared.all().any(|request| request.place == place);
    match CHECKS[usize::from(shared.check)] {
        Check::Ledger => !shared.of(QUIET).any(|request| request.is_known && request.place != Place::Decided),
        Check::Outbox => !mine(Place::Outbox),
        // Of the order queue only its length is known.
        Check::OrderQueue => !anyones(Place::Queue),
        Check::RetryQueue => {
            !(if setup.lacks(Unshared::OwnMessagesOnly) { anyones(Place::Retry) } else { mine(Place::Retry) })
        }
        Check::Quiet => {
            let happened = shared.of(QUIET).any(|request| request.is_old) || came_back(setup, shared);
            !happened || setup.lacks(Unshared::QuietTime)
        }
        Check::Opens => !came_back(setup, shared),
    }
}

/// Whether the watch over the retry queues has seen a message of the quiet sale since the rebuild began to check.
fn came_back(setup: &NeighboursSetup, shared: &Shared) -> bool {
    shared.of(QUIET).any(|request| request.came_back) && !setup.lacks(Unshared::RetriesWatched)
}

pub fn apply(setup: &NeighboursSetup, shared: &mut Shared, step: SharedStep) {
    match step {
        SharedStep::Buy(sale, at) => {
            shared.requests[sale][at] = Bought { place: Place::Outbox, is_known: true, ..Bought::default() };
        }
        SharedStep::Send(sale, at) => moves(shared, (sale, at), Place::Queue),
        SharedStep::Expire(sale, at) => moves(shared, (sale, at), Place::Queue),
        SharedStep::Deliver(sale, at, consumer) => moves(shared, (sale, at), Place::Hand(consumer)),
        SharedStep::Write(consumer) => write(setup, shared, consumer),
        SharedStep::RowIsHeld => shared.is_locked = true,
        SharedStep::RowIsFree => shared.is_locked = false,
        SharedStep::MomentPasses => shared.lock = Lock::ToBeTried,
        SharedStep::Compensate(sale, at) => {
            let request = &mut shared.requests[sale][at];
            (request.place, request.is_old) = (Place::Decided, false);
        }
        SharedStep::Checks => check(setup, shared),
        SharedStep::Fault(kind, consumer) => {
            shared.faults_left -= 1;
            strike(shared, kind, consumer);
        }
    }
}

fn moves(shared: &mut Shared, (sale, at): (usize, usize), to: Place) {
    let searching = shared.check > 0;
    let request = &mut shared.requests[sale][at];
    (request.place, request.has_moved) = (to, searching);
}

fn strike(shared: &mut Shared, kind: SharedFault, consumer: u8) {
    let held = |place: Place| place == Place::Hand(consumer);
    let searching = shared.check > 0;
    match kind {
        SharedFault::RedisForgets => {
            (shared.is_open, shared.check) = (false, 0);
            for request in &mut shared.requests[QUIET] {
                request.is_known = false;
                if request.place == Place::Outbox {
                    *request = Bought::default();
                }
            }
        }
        SharedFault::RowIsWrong => shared.row_is_wrong = true,
        SharedFault::ConsumerDies => {
            for request in shared.requests.iter_mut().flatten().filter(|request| held(request.place)) {
                (request.place, request.has_moved) = (Place::Queue, searching);
            }
        }
        SharedFault::SystemError => {
            for request in shared.requests[QUIET].iter_mut().filter(|request| held(request.place)) {
                request.attempts += 1;
                (request.has_moved, request.is_old) = (searching, false);
                send_back(request);
            }
        }
    }
}

/// `persist_all`: each order by itself where it has to be; those of a locked sale are sent back, without a try counted.
fn write(setup: &NeighboursSetup, shared: &mut Shared, consumer: u8) {
    let of_busy = shared.group(consumer).any(|(sale, _)| sale == BUSY);
    let is_tried = shared.lock != Lock::LeftAlone;
    let sent_back = of_busy && (shared.is_locked || !is_tried);
    let as_one = sent_back && setup.lacks(Unshared::LockedApart);
    for sale in 0..SALES {
        for request in &mut shared.requests[sale] {
            if request.place != Place::Hand(consumer) {
                continue;
            }
            request.is_old = false;
            if as_one {
                request.attempts = ATTEMPTS_MAX.min(request.attempts + 1);
                send_back(request);
                shared.blamed |= sale == QUIET;
            } else if sale == BUSY && sent_back {
                request.place = Place::Retry;
            } else {
                request.place = Place::Decided;
            }
        }
    }
    if of_busy && is_tried {
        shared.lock = if shared.is_locked { Lock::LeftAlone } else { Lock::Unknown };
    }
}

/// To the retry queue, where the watch sees it, or to the DLQ.
fn send_back(request: &mut Bought) {
    let again = request.attempts < ATTEMPTS_MAX;
    (request.place, request.came_back) = (if again { Place::Retry } else { Place::Parked }, again || request.came_back);
}

fn check(setup: &NeighboursSetup, shared: &mut Shared) {
    if shared.check == 0 {
        shared.requests.iter_mut().flatten().for_each(|request| request.came_back = false);
    }
    if !passes(setup, shared) {
        if CHECKS[usize::from(shared.check)] != Check::Quiet || came_back(setup, shared) {
            begin_again(shared);
        }
        return;
    }
    if CHECKS[usize::from(shared.check)] == Check::Opens {
        let early = shared.of(QUIET).any(|request| request.place.is_on_its_way());
        shared.opened_early |= early;
        (shared.is_open, shared.rebuilt) = (true, true);
        return begin_again(shared);
    }
    shared.check += 1;
    let next = CHECKS[usize::from(shared.check)];
    if matches!(next, Check::Quiet | Check::Ledger) {
        shared.requests.iter_mut().flatten().for_each(|request| request.has_moved = false);
    }
    if next == Check::Quiet {
        for request in &mut shared.requests[QUIET] {
            request.is_old = matches!(request.place, Place::Queue | Place::Hand(_));
        }
    }
}

fn begin_again(shared: &mut Shared) {
    shared.check = 0;
    for request in shared.requests.iter_mut().flatten() {
        (request.has_moved, request.is_old) = (false, false);
    }
}
