//! The broker's queues and P4 (`src/p4_persist`, `src/orders/persist`): deliver, one transaction, ack; or send back
//! a confirmed copy, then ack.

use crate::actions::Action;
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{ATTEMPTS_MAX, CONSUMERS, Delivery, FAILED, Hand, ORDER, REQUESTS, Stage, World, index};
use seckill::domain::outcome::{FailReason, NextStep, Obstacle, Outcome, Verdict, after_obstacle};
use seckill::domain::states::RequestEvent;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    let faulty = |kind| world.faults_left > 0 && setup.may(kind);
    for k in 0..CONSUMERS {
        let mut held = (0..REQUESTS).filter(|at| world.requests[*at].consumer[k].stage != Stage::None).peekable();
        let Some(first) = held.peek().copied() else {
            delivery_actions(world, k, out);
            continue;
        };
        if faulty(Kind::ConsumerCrash) {
            out.push(Action::Fault(Kind::ConsumerCrash, first, k));
        }
        if faulty(Kind::ConsumerCutOff) && !world.requests[first].consumer[k].is_cut_off {
            out.push(Action::Fault(Kind::ConsumerCutOff, first, k));
        }
        let all_done = is_finished(world, k);
        for at in held {
            let stage = world.requests[at].consumer[k].stage;
            for kind in [Kind::SystemError, Kind::UnknownCommit] {
                if stage == Stage::Received && faulty(kind) {
                    out.push(Action::Fault(kind, at, k));
                }
            }
            // The ack is due when each order of the message is finished, and is one for all.
            let early = setup.lacks(Mutation::AckWithFirstOrder);
            if !is_done(stage) || (all_done && at == first) || early {
                out.push(Action::Consumer(at, k));
            }
        }
    }
    for at in 0..REQUESTS {
        if world.requests[at].waits_for_a_retry() {
            out.push(Action::Expire(at));
        }
    }
    let holds = |r: &crate::state::Request| r.is_queued() || r.mq_dlq || r.consumer != [Delivery::default(); CONSUMERS];
    if faulty(Kind::BrokerLosesData) && world.requests.iter().any(holds) {
        out.push(Action::Fault(Kind::BrokerLosesData, 0, 0));
    }
}

/// Messages that wait. One that was never sent back holds all orders of its entry.
fn delivery_actions(world: &World, k: usize, out: &mut Vec<Action>) {
    for at in 0..REQUESTS {
        for attempts in 0..usize::from(ATTEMPTS_MAX) {
            let stands_for_it = attempts > 0 || world.leads_entry(at);
            if world.requests[at].queue[attempts] > 0 && stands_for_it {
                out.push(Action::Deliver(at, attempts, k));
            }
        }
    }
}

fn is_done(stage: Stage) -> bool {
    matches!(stage, Stage::Decided | Stage::Copied)
}

/// Whether every order of the message that a consumer has is decided, or copied to another queue.
fn is_finished(world: &World, k: usize) -> bool {
    world.requests.iter().all(|r| r.consumer[k].stage == Stage::None || is_done(r.consumer[k].stage))
}

pub fn deliver(world: &mut World, at: usize, attempts: usize, k: usize) {
    let orders = if attempts == 0 { world.orders_of_entry(at) } else { vec![at] };
    for at in orders {
        let request = &mut world.requests[at];
        request.queue[attempts] -= 1;
        request.consumer[k] = Delivery { stage: Stage::Received, attempts: index(attempts), is_cut_off: false };
    }
}

/// Expiry dead-letters a retry back into the order queue.
pub fn expire(setup: &Setup, world: &mut World, at: usize) {
    let request = &mut world.requests[at];
    let Some(attempts) = request.retry.iter().position(|copies| *copies > 0) else { return };
    request.retry[attempts] -= 1;
    // The target is away: at-least-once keeps the message until it is back, at-most-once drops it.
    if !setup.lacks(Mutation::DeadLetterAtMostOnce) {
        request.queue[attempts] += 1;
    }
}

/// The next thing the consumer does by itself with its delivery.
pub fn go_on(setup: &Setup, world: &mut World, at: usize, k: usize) {
    match world.requests[at].consumer[k].stage {
        Stage::Received => {
            let verdict = transact(setup, world, at);
            let stage = if verdict == Verdict::Conflict { Stage::Park } else { Stage::Decided };
            world.requests[at].consumer[k].stage = stage;
            world.note(at, verdict.event());
        }
        Stage::Retry => {
            let request = &mut world.requests[at];
            request.retry[usize::from(request.consumer[k].attempts) + 1] += 1;
            request.consumer[k].stage = Stage::Copied;
        }
        Stage::Park => {
            world.requests[at].mq_dlq = true;
            world.requests[at].consumer[k].stage = Stage::Copied;
            if setup.lacks(Mutation::DlqGivesStockBack) {
                world.meta.stock += 1;
            }
        }
        Stage::Decided | Stage::Copied if setup.lacks(Mutation::AckWithFirstOrder) => {
            world.requests[at].consumer[k] = Delivery::default();
        }
        Stage::Decided | Stage::Copied => acknowledge(world, k),
        Stage::None => {}
    }
}

fn acknowledge(world: &mut World, k: usize) {
    for request in &mut world.requests {
        request.consumer[k] = Delivery::default();
    }
}

/// The transaction failed, or its commit was not answered; `committed`: it was done all the same.
pub fn system_error(setup: &Setup, world: &mut World, (at, k): (usize, usize), committed: bool) {
    if committed {
        // No process sees the verdict.
        transact(setup, world, at);
    } else if setup.lacks(Mutation::HalfTransaction) && world.requests[at].outcome == 0 {
        world.db_stock -= 1;
    }
    let delivery = &mut world.requests[at].consumer[k];
    let spent = delivery.attempts + 1 >= setup.message_tries;
    delivery.stage = if spent { Stage::Park } else { Stage::Retry };
    world.note(at, if spent { RequestEvent::PersistSpent } else { RequestEvent::PersistFailed });
}

/// The consumer dies: what it had not acknowledged is delivered again.
pub fn consumer_crash(setup: &Setup, world: &mut World, at: usize, k: usize) {
    let gone = |other: &usize| world.requests[*other].consumer[k].stage == Stage::None;
    let acknowledged = setup.lacks(Mutation::AckWithFirstOrder)
        && world.requests[at].consumer[k].attempts == 0
        && world.orders_of_entry(at).iter().any(gone);
    for request in world.requests.iter_mut().filter(|request| request.consumer[k].stage != Stage::None) {
        let Delivery { stage, attempts, is_cut_off } = std::mem::take(&mut request.consumer[k]);
        if !(is_cut_off || acknowledged || setup.lacks(Mutation::AckBeforeCommit) && stage == Stage::Received) {
            request.queue[usize::from(attempts)] += 1;
        }
    }
}

/// Its connection breaks: what it had not acknowledged is delivered again, and an ack of it counts for nothing.
pub fn cut_off(world: &mut World, k: usize) {
    for request in world.requests.iter_mut().filter(|request| request.consumer[k].stage != Stage::None) {
        request.consumer[k].is_cut_off = true;
        request.queue[usize::from(request.consumer[k].attempts)] += 1;
    }
}

/// The broker comes back empty; every connection to it is gone.
pub fn broker_loses_data(world: &mut World) {
    for request in &mut world.requests {
        (request.queue, request.retry, request.mq_dlq) = Default::default();
        request.consumer = Default::default();
        for hand in &mut request.hand {
            if matches!(hand, Hand::Sent | Hand::Unsent) {
                *hand = Hand::Failed;
            }
        }
    }
}

/// The transaction of one request; what stops it means what `domain::outcome` says.
pub fn transact(setup: &Setup, world: &mut World, at: usize) -> Verdict {
    let verdict = match obstacle(setup, world, at) {
        None => Verdict::Ordered,
        Some(Obstacle::BuyerHasOrder) if setup.lacks(Mutation::BuyerTakenIsSuccess) => {
            Verdict::Already(Outcome::Ordered)
        }
        Some(obstacle) => match after_obstacle(obstacle) {
            NextStep::Decided(verdict) => verdict,
            NextStep::RecordFailure(reason) => Verdict::Refused(reason),
            NextStep::Park => unreachable!("the model's database knows its sale"),
        },
    };
    let request = &mut world.requests[at];
    match verdict {
        Verdict::Ordered => {
            request.outcome |= ORDER;
            request.orders += 1;
            world.db_stock -= 1;
        }
        Verdict::Refused(reason) if !setup.lacks(Mutation::RefusalNotRecorded) => {
            request.outcome |= FAILED;
            world.refused(at, reason.into());
        }
        Verdict::Refused(_) | Verdict::Already(_) | Verdict::Conflict => {}
    }
    verdict
}

/// Whether the request, or its number, has the outcome of something else.
fn is_other_outcome(setup: &Setup, world: &World, at: usize) -> bool {
    let decided_elsewhere = world.is_decided_elsewhere(at) && !setup.lacks(Mutation::KeyedByNumber);
    decided_elsewhere || !setup.lacks(Mutation::NoOutcomeKey) && world.number_is_taken(at)
}

/// In the order of the transaction's statements: outcome, order, stock.
fn obstacle(setup: &Setup, world: &World, at: usize) -> Option<Obstacle> {
    let request = &world.requests[at];
    let keyed = !setup.lacks(Mutation::NoOutcomeKey);
    if keyed && request.outcome == ORDER {
        Some(Obstacle::SameOutcome(Outcome::Ordered))
    } else if keyed && request.outcome == FAILED && !setup.lacks(Mutation::FailedIsOverruled) {
        Some(Obstacle::SameOutcome(Outcome::Failed(FailReason::GivenUp)))
    } else if is_other_outcome(setup, world, at) {
        Some(Obstacle::OtherOutcome)
    } else if request.decided.closed && !setup.lacks(Mutation::ClosedGapIsFree) {
        Some(Obstacle::NumberClosed)
    } else if setup.one_buyer && world.requests.iter().any(|r| r.orders > 0) {
        Some(Obstacle::BuyerHasOrder)
    } else if world.db_stock < 1 {
        Some(Obstacle::StockShort)
    } else {
        None
    }
}
