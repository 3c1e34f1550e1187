//! What must always hold of deliveries, and what their searches must have seen to be worth anything.

use super::setup::WebhooksSetup;
use super::state::{Answer, Deliveries, Row, TRIES, Try};
use super::steps::is_quiet;
use seckill::domain::webhook::DeliveryState;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 7] = [
    ("W1", "a delivery is DELIVERED only if its receiver has it"),
    (
        "W2",
        "it is DEAD only if that number of calls has failed which the schedule has, since it was written or replayed last; those \
         count that were not recorded yet",
    ),
    (
        "W3",
        "when nothing happens any more, each delivery is DELIVERED or DEAD, or waits for a receiver that is closed, which is on \
         record",
    ),
    ("W4", "no row is deleted but DELIVERED ones"),
    (
        "W5",
        "a process whose receiver answered 410 begins no call until a replay or another leader has opened the receiver",
    ),
    (
        "W6",
        "when nothing happens any more, what was replayed was sent since, or its receiver answered 410; a call counts that was not \
         recorded yet",
    ),
    ("W7", "a success that is recorded stays so until a replay, whatever else is recorded"),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 6] = [
    ("two leaders", "two processes have a call of one delivery under way"),
    ("sent again", "a delivery is under way that its receiver has"),
    ("dead and taken", "a delivery is DEAD, and a call of it succeeds that is not recorded yet"),
    ("closed", "a receiver is closed, and a delivery waits"),
    ("opened", "a receiver that answered 410 gets a call"),
    ("counted elsewhere", "a failed try is about to be recorded that another process has counted"),
];

pub fn all() -> Vec<Property<WebhooksSetup>> {
    let [w1, w2, w3, w4, w5, w6, w7] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5, s6] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(w1, |_, deliveries: &Deliveries| {
            !any(deliveries, |_, row| row.state == DeliveryState::Delivered && !row.taken)
        }),
        Property::always(w2, |_, deliveries: &Deliveries| {
            !any(deliveries, |_, row| row.state == DeliveryState::Dead && row.failed < TRIES)
        }),
        Property::always(w3, |setup, deliveries: &Deliveries| {
            let waits = any(deliveries, |_, row| row.state == DeliveryState::Waiting);
            !waits || deliveries.closed || !is_quiet(setup, deliveries)
        }),
        Property::always(w4, |_, deliveries: &Deliveries| !deliveries.lost),
        Property::always(w5, |_, deliveries: &Deliveries| !deliveries.sent_after_gone),
        Property::always(w6, |setup, deliveries: &Deliveries| {
            !any(deliveries, |_, row| !row.sent) || !is_quiet(setup, deliveries)
        }),
        Property::always(w7, |_, deliveries: &Deliveries| {
            let recorded = |row: &Row| row.recorded && row.state != DeliveryState::Delivered;
            !deliveries.undone && !any(deliveries, |_, row| recorded(row))
        }),
        Property::sometimes(s1, |_, deliveries: &Deliveries| any(deliveries, |at, _| under_way(deliveries, at) == 2)),
        Property::sometimes(s2, |_, deliveries: &Deliveries| {
            any(deliveries, |at, row| row.taken && under_way(deliveries, at) > 0)
        }),
        Property::sometimes(s3, |_, deliveries: &Deliveries| {
            any(deliveries, |at, row| {
                row.state == DeliveryState::Dead
                    && has(deliveries, at, |one| matches!(one, Try::Ended(_, Answer::Taken)))
            })
        }),
        Property::sometimes(s4, |_, deliveries: &Deliveries| {
            deliveries.closed && any(deliveries, |_, row| row.state == DeliveryState::Waiting)
        }),
        Property::sometimes(s5, |_, deliveries: &Deliveries| {
            let gone = |at| has(deliveries, at, |one| matches!(one, Try::Ended(_, Answer::Gone)));
            any(deliveries, |at, _| gone(at) && under_way(deliveries, at) > 0)
        }),
        Property::sometimes(s6, |_, deliveries: &Deliveries| {
            any(deliveries, |at, row| {
                has(deliveries, at, |one| matches!(one, Try::Ended(tries, Answer::Refused) if *tries < row.attempts))
            })
        }),
    ]
}

fn any(deliveries: &Deliveries, condition: impl Fn(usize, &Row) -> bool) -> bool {
    deliveries.rows.iter().enumerate().any(|(at, row)| row.as_ref().is_some_and(|row| condition(at, row)))
}

fn has(deliveries: &Deliveries, delivery: usize, condition: impl Fn(&Try) -> bool) -> bool {
    deliveries.senders.iter().any(|sender| condition(&sender.tries[delivery]))
}

fn under_way(deliveries: &Deliveries, delivery: usize) -> usize {
    deliveries.senders.iter().filter(|sender| matches!(sender.tries[delivery], Try::UnderWay(_))).count()
}
