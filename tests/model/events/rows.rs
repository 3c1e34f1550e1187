//! Which searches about events are made, and what each is expected to find.

use super::setup::{EventFault, EventsSetup, Unsent};
use crate::search::{Complete, Lacking};

const USUAL: &[EventFault] = &[
    EventFault::ConsumerDies,
    EventFault::PublisherDies,
    EventFault::NotTaken,
    EventFault::ConfirmLost,
    EventFault::SystemError,
    EventFault::UnknownCommit,
];
const LOST: &[EventFault] = &[EventFault::MessageLost, EventFault::ConsumerDies, EventFault::UnknownCommit];
const QUEUE_LOST: &[EventFault] = &[EventFault::MessageLost, EventFault::NotTaken, EventFault::ConfirmLost];
const WRITERS: &[EventFault] = &[EventFault::WriterDies];

const fn of(faults: u8, kinds: &'static [EventFault]) -> EventsSetup {
    EventsSetup { faults, kinds, absent: None }
}

/// What every test run searches.
pub fn configurations() -> Vec<Complete<EventsSetup>> {
    let row = |name, setup, states_min, breaks| Complete { name, setup, states_min, breaks };
    vec![
        row("every fault but a lost message", of(3, USUAL), 1_000, &[]),
        row("the order queue is purged, or its broker loses its disk", of(2, LOST), 500, &["E1", "E3", "E4"]),
        row("the same, and no consumer dies or is in doubt of a commit", of(3, QUEUE_LOST), 500, &[]),
    ]
}

pub fn without() -> Vec<Lacking<EventsSetup>> {
    let row = |name, absent, setup: EventsSetup, breaks| {
        let setup = EventsSetup { absent: Some(absent), ..setup };
        Lacking { name, setup, breaks }
    };
    let usual = of(2, USUAL);
    vec![
        row(
            "the row of an event is written in a later transaction than the change",
            Unsent::RowWithItsChange,
            of(1, WRITERS),
            &["E4", "E1", "E3"],
        ),
        row("P5 leaves the event to the message", Unsent::RowOfCompensation, of(1, LOST), &["E4", "E1", "E3"]),
        row("a message is acknowledged before its event", Unsent::EventBeforeAck, usual, &["E4", "E1", "E3"]),
        row("an event that the broker does not take is dropped", Unsent::StoredWhenNotTaken, usual, &["E1", "E3"]),
        row(
            "a consumer that loses its queue drops the events of what it has committed",
            Unsent::EventsOutliveQueue,
            of(1, QUEUE_LOST),
            &["E4", "E1", "E3"],
        ),
        row(
            "a decided dead letter is removed without its event",
            Unsent::EventOfDeadLetter,
            usual,
            &["E4", "E1", "E3"],
        ),
        row("an event is published before its change is committed", Unsent::CommitBeforeEvent, usual, &["E2"]),
        row("a publisher deletes rows as it reads them", Unsent::DeletedAfterConfirm, usual, &["E1", "E3"]),
        row("a publisher deletes what is there, not its page", Unsent::OwnRowsDeleted, usual, &["E1", "E3"]),
        row("a receiver takes whatever state comes last", Unsent::OlderVersionsDropped, usual, &["E4"]),
        row("a receiver drops refunds of older versions, too", Unsent::RefundsKept, usual, &["E4"]),
    ]
}
