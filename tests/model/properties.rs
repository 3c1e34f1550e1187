//! What must always hold, and what a search must have seen to be worth anything.

use crate::actions::is_quiet;
use crate::laws_of_the_books as books;
use crate::setup::{Mutation, Setup};
use crate::sheet;
use crate::state::{Answered, Entry, FAILED, Hand, ORDER, REQUESTS, Request, Sale, Stage, World};
use seckill::domain::states::{P5Reconcile, State as Journey};
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 13] = [
    ("P1", "the database's stock is never below zero, and stock + orders = what was for sale"),
    ("P2", "at most one order for a request, and for a buyer of a one-per-user sale"),
    (
        "P3",
        "answered \"accepted\" ⇒ it is at rest somewhere: an outcome, an outbox entry, a message, a DLQ record or (when P5 runs) \
         a ledger record; answered \"sold out\" ⇒ it was not accepted",
    ),
    (
        "P4",
        "no more requests are accepted than units were for sale, and what Redis sold of an epoch is what its ledger lists",
    ),
    (
        "P5",
        "when nothing happens any more, every accepted request has exactly one outcome (when P5 does not run: or a DLQ record)",
    ),
    ("P6", "never both ORDER and FAILED"),
    ("P7", "nothing happens that the transition table of `src/domain/states` forbids"),
    ("P8", "like P5, for those of which anything is left: what was lost is P3's matter, what is left is not stuck"),
    (
        "P9",
        "`D = R + U + P + X + W` whenever Redis sells; after a loss of data it is off by what was lost then, less what was \
         refused since, and a rebuild sets that to 0",
    ),
    (
        "P10",
        "no grant's units are for sale twice; when nothing happens any more, each grant's are for sale or were sold",
    ),
    ("P11", "no accepted request ends SOLD_OUT or NUMBER_REUSED unless a server has lost data before"),
    (
        "P12",
        "the audit is never consistent over a lost accepted request that a number shows, nor, when nothing happens any \
         more, over a unit or a grant too many or too few",
    ),
    ("P13", "the audit has no finding where nothing was lost, however much later than Redis it reads the database"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 18] = [
    ("compensated", "P5 wrote a missing order"),
    ("failed for good", "P5 recorded a final failure"),
    ("replay", "a buyer without an answer asks again and is in the ledger"),
    ("parked by a relay and ordered", "a relay DLQ record and an order for one request"),
    ("parked by a consumer and ordered", "an MQ DLQ record and an order for one request"),
    ("both relays", "two relays hold one entry"),
    ("redelivered", "a message of a decided request is delivered"),
    ("race with P5", "P5 is about to land what was decided meanwhile"),
    ("frozen", "the fence froze the sale"),
    ("rebuilt", "the sale sells under the next epoch"),
    ("grant in a rebuild", "a grant waits while a rebuild goes on"),
    ("sold again", "Redis has the units of a reclaim or a cancel"),
    ("rebuilt twice", "the sale sells, and an attempt before this one has died or was overtaken"),
    ("old count", "the database decided a number above the one that an audit has counted"),
    ("lost and seen", "the audit has a finding while the sale sells"),
    ("one order sent back", "of two orders in one message, one is decided and the other waits in the retry queue"),
    ("one message, two dead letters", "an entry of two orders is two records of the relay DLQ"),
    ("two numbers", "a request is decided under one number, and Redis has it under another"),
];

pub fn all() -> Vec<Property<Setup>> {
    let [p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11, s12, s13, s14, s15, s16, s17, s18] =
        SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(p1, stock_is_conserved),
        Property::always(p2, one_order),
        Property::always(p3, answers_are_true),
        Property::always(p4, redis_is_conserved),
        Property::always(p5, |setup: &Setup, world: &World| {
            ends(setup, world, |r| r.answered == Answered::Accepted || r.kept.ledger > 0)
        }),
        Property::always(p6, |_, world: &World| {
            let twice = |at: usize| world.requests[at].outcome > 0 && world.is_decided_elsewhere(at);
            world.requests.iter().all(one_outcome) && !(0..REQUESTS).any(twice)
        }),
        Property::always(p7, |_, world: &World| !world.illegal),
        Property::always(p8, |setup: &Setup, world: &World| ends(setup, world, Request::survives)),
        Property::always(p9, books::bridge),
        Property::always(p10, books::grants_once),
        Property::always(p11, |_, world: &World| !world.books.unfounded),
        Property::always(p12, books::no_loss_is_hidden),
        Property::always(p13, books::no_false_alarm),
        Property::sometimes(s1, |_, world: &World| any(world, |r| at(r, P5Reconcile::Compensated))),
        Property::sometimes(s2, |_, world: &World| any(world, |r| at(r, P5Reconcile::FailedFinal))),
        Property::sometimes(s3, |_, world: &World| {
            any(world, |r| r.answered == Answered::Unknown && r.kept.ledger > 0)
        }),
        Property::sometimes(s4, |_, world: &World| any(world, |r| r.kept.parked && r.outcome == ORDER)),
        Property::sometimes(s5, |_, world: &World| any(world, |r| r.mq_dlq && r.outcome == ORDER)),
        Property::sometimes(s6, |_, world: &World| any(world, |r| !r.hand.contains(&Hand::None))),
        Property::sometimes(s7, |_, world: &World| any(world, |r| r.outcome > 0 && has(r, Stage::Received))),
        Property::sometimes(s8, |_, world: &World| any(world, |r| r.audited && r.outcome > 0)),
        Property::sometimes(s9, |_, world: &World| world.meta.sale == Sale::Frozen),
        Property::sometimes(s10, |_, world: &World| world.meta.sale == Sale::Open && world.meta.epoch > 1),
        Property::sometimes(s11, |_, world: &World| books::grant_in_a_rebuild(world)),
        Property::sometimes(s12, |_, world: &World| books::sold_again(world)),
        Property::sometimes(s13, |_, world: &World| world.meta.sale == Sale::Open && world.meta.epoch > 2),
        Property::sometimes(s14, |_, world: &World| books::old_count(world)),
        Property::sometimes(s15, |setup, world: &World| world.is_whole() && !sheet::is_consistent(setup, world)),
        Property::sometimes(s16, |_, world: &World| {
            two_of_an_entry(world, |one, two| one.outcome > 0 && two.waits_for_a_retry())
        }),
        Property::sometimes(s17, |_, world: &World| {
            two_of_an_entry(world, |one, two| one.kept.parked && two.kept.parked)
        }),
        Property::sometimes(s18, |_, world: &World| {
            (0..REQUESTS).any(|at| world.is_decided_elsewhere(at) && world.requests[at].kept.ledger > 0)
        }),
    ]
}

fn any(world: &World, condition: impl Fn(&Request) -> bool) -> bool {
    world.requests.iter().any(condition)
}

fn two_of_an_entry(world: &World, are: impl Fn(&Request, &Request) -> bool) -> bool {
    let pairs = (0..REQUESTS).flat_map(|one| (0..REQUESTS).map(move |two| (one, two)));
    let mut shared = pairs.filter(|(one, two)| one != two && world.share_entry(*one, *two));
    shared.any(|(one, two)| are(&world.requests[one], &world.requests[two]))
}

fn at(request: &Request, state: P5Reconcile) -> bool {
    request.journey == Some(Journey::P5(state))
}

fn has(request: &Request, stage: Stage) -> bool {
    request.consumer.iter().any(|delivery| delivery.stage == stage)
}

fn stock_is_conserved(_: &Setup, world: &World) -> bool {
    let standing: i8 = world.requests.iter().map(Request::units_ordered).sum();
    world.db_stock >= 0 && world.db_stock + standing == world.books.rows.granted
}

fn orders(world: &World) -> i8 {
    world.requests.iter().map(|r| i8::try_from(r.orders).unwrap_or(i8::MAX)).sum()
}

fn one_order(setup: &Setup, world: &World) -> bool {
    let of_a_buyer = if setup.one_buyer { orders(world) } else { 0 };
    let of_one = |at: usize| world.requests[at].orders + world.other_number(at).map_or(0, |other| other.orders);
    of_a_buyer <= 1 && (0..REQUESTS).all(|at| of_one(at) <= 1)
}

fn answers_are_true(setup: &Setup, world: &World) -> bool {
    (0..REQUESTS).map(|at| (at, &world.requests[at])).all(|(at, r)| match r.answered {
        Answered::Accepted => is_at_rest(setup, r) || world.is_decided_elsewhere(at),
        Answered::Refused => !r.survives(),
        Answered::Absent | Answered::Nothing | Answered::Unknown | Answered::Waiting => true,
    })
}

/// Whether a server has it; what a process has in memory does not count, nor what is never read.
fn is_at_rest(setup: &Setup, request: &Request) -> bool {
    let acknowledged_early = setup.lacks(Mutation::AckBeforeCommit);
    let unacked =
        request.consumer.iter().any(|d| d.stage != Stage::None && !(acknowledged_early && d.stage == Stage::Received));
    let in_ledger = setup.reconcile && request.kept.ledger > 0;
    let in_outbox = request.kept.entry != Entry::None;
    request.outcome > 0 || in_ledger || in_outbox || request.is_parked() || request.is_queued() || unacked
}

fn redis_is_conserved(_: &Setup, world: &World) -> bool {
    let given_back = |r: &Request| r.decided.cancelled || r.decided.reclaimed || r.decided.closed;
    let accepted = world.requests.iter().filter(|r| r.survives() && !given_back(r)).count();
    let of_epoch = |r: &&Request| world.meta.epoch > 0 && [r.kept.ledger, r.kept.trimmed].contains(&world.meta.epoch);
    let listed = world.requests.iter().filter(of_epoch).count();
    let sold = usize::try_from(world.meta.granted - world.meta.stock);
    let sold_is_listed = world.meta.sale == Sale::Missing || sold == Ok(listed);
    accepted <= usize::try_from(world.books.rows.granted).unwrap_or(0) && sold_is_listed
}

fn ends(setup: &Setup, world: &World, concerns: impl Fn(&Request) -> bool) -> bool {
    let decided = |at: usize| {
        let outcome = world.requests[at].outcome;
        outcome == ORDER || outcome == FAILED || (outcome == 0 && world.is_settled(at))
    };
    let has_ended = |at: usize| decided(at) || (!setup.reconcile && world.requests[at].is_parked());
    (0..REQUESTS).all(|at| !concerns(&world.requests[at]) || has_ended(at)) || !is_quiet(setup, world)
}

fn one_outcome(request: &Request) -> bool {
    request.outcome != ORDER | FAILED && !(request.outcome == FAILED && request.orders > 0)
}
