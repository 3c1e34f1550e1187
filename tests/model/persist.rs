//! The broker's queues and P4 (`src/p4_persist`, `src/store/mysql/persist`): deliver, one transaction, ack; or send back
//! a confirmed copy, then ack.

use crate::actions::Action;
use crate::setup::{Kind, Mutation, Setup};
use crate::state::{ATTEMPTS_MAX, Delivery, FAILED, Hand, ORDER, PAIR, REQUESTS, Stage, World, index};
use seckill::domain::outcome::{FailReason, NextStep, Obstacle, Outcome, Verdict, after_obstacle};
use seckill::domain::states::RequestEvent;

pub fn actions(setup: &Setup, world: &World, out: &mut Vec<Action>) {
    let faulty = |kind| world.faults_left > 0 && setup.may(kind);
    for k in 0..PAIR {
        let busy = world.requests.iter().position(|r| r.consumer[k].stage != Stage::None);
        let Some(at) = busy else {
            for at in 0..REQUESTS {
                for attempts in 0..usize::from(ATTEMPTS_MAX) {
                    if world.requests[at].queue[attempts] > 0 {
                        out.push(Action::Deliver(at, attempts, k));
                    }
                }
            }
            continue;
        };
        if world.requests[at].consumer[k].stage == Stage::Received {
            for kind in [Kind::SystemError, Kind::UnknownCommit] {
                if faulty(kind) {
                    out.push(Action::Fault(kind, at, k));
                }
            }
        }
        if faulty(Kind::ConsumerCrash) {
            out.push(Action::Fault(Kind::ConsumerCrash, at, k));
        }
        out.push(Action::Consumer(at, k));
    }
    for at in 0..REQUESTS {
        if world.requests[at].retry > 0 {
            out.push(Action::Expire(at));
        }
    }
    let holds = |r: &crate::state::Request| r.is_queued() || r.mq_dlq || r.consumer != [Delivery::default(); PAIR];
    if faulty(Kind::BrokerLosesData) && world.requests.iter().any(holds) {
        out.push(Action::Fault(Kind::BrokerLosesData, 0, 0));
    }
}

pub fn deliver(world: &mut World, at: usize, attempts: usize, k: usize) {
    let request = &mut world.requests[at];
    request.queue[attempts] -= 1;
    request.consumer[k] = Delivery { stage: Stage::Received, attempts: index(attempts) };
}

/// Expiry dead-letters a retry back into the order queue.
pub fn expire(setup: &Setup, world: &mut World, at: usize) {
    let request = &mut world.requests[at];
    request.retry -= 1;
    // The target is away: at-least-once keeps the message until it is back, at-most-once drops it.
    if !setup.lacks(Mutation::DeadLetterAtMostOnce) {
        request.queue[usize::from(ATTEMPTS_MAX) - 1] += 1;
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
            world.requests[at].retry += 1;
            world.requests[at].consumer[k].stage = Stage::Copied;
        }
        Stage::Park => {
            world.requests[at].mq_dlq = true;
            world.requests[at].consumer[k].stage = Stage::Copied;
            if setup.lacks(Mutation::DlqGivesStockBack) {
                world.meta.stock += 1;
            }
        }
        Stage::Decided | Stage::Copied => world.requests[at].consumer[k] = Delivery::default(),
        Stage::None => {}
    }
}

/// The transaction failed, or its commit was not answered; `committed`: it was done all the same.
pub fn system_error(setup: &Setup, world: &mut World, (at, k): (usize, usize), committed: bool) {
    if committed {
        // Nobody sees the verdict.
        transact(setup, world, at);
    } else if setup.lacks(Mutation::HalfTransaction) && world.requests[at].outcome == 0 {
        world.db_stock -= 1;
    }
    let delivery = &mut world.requests[at].consumer[k];
    let spent = delivery.attempts + 1 >= ATTEMPTS_MAX;
    delivery.stage = if spent { Stage::Park } else { Stage::Retry };
    world.note(at, if spent { RequestEvent::PersistSpent } else { RequestEvent::PersistFailed });
}

/// The consumer dies: what it had not acknowledged is delivered again.
pub fn consumer_crash(setup: &Setup, world: &mut World, at: usize, k: usize) {
    let request = &mut world.requests[at];
    let Delivery { stage, attempts } = std::mem::take(&mut request.consumer[k]);
    if !(setup.lacks(Mutation::AckBeforeCommit) && stage == Stage::Received) {
        request.queue[usize::from(attempts)] += 1;
    }
}

/// The broker comes back empty; every connection to it is gone.
pub fn broker_loses_data(world: &mut World) {
    for request in &mut world.requests {
        (request.queue, request.retry, request.mq_dlq) = (Default::default(), 0, false);
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

/// In the order of the transaction's statements: outcome, order, stock.
fn obstacle(setup: &Setup, world: &World, at: usize) -> Option<Obstacle> {
    let request = &world.requests[at];
    let keyed = !setup.lacks(Mutation::NoOutcomeKey);
    if keyed && request.outcome == ORDER {
        Some(Obstacle::SameOutcome(Outcome::Ordered))
    } else if keyed && request.outcome == FAILED && !setup.lacks(Mutation::FailedIsOverruled) {
        Some(Obstacle::SameOutcome(Outcome::Failed(FailReason::GivenUp)))
    } else if keyed
        && (world.number_is_taken(at) || (request.decided.closed && !setup.lacks(Mutation::ClosedGapIsFree)))
    {
        Some(Obstacle::OtherOutcome)
    } else if setup.one_buyer && world.requests.iter().any(|r| r.orders > 0) {
        Some(Obstacle::BuyerHasOrder)
    } else if world.db_stock < 1 {
        Some(Obstacle::StockShort)
    } else {
        None
    }
}
