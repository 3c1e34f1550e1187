//! What can happen next to the events of an order. Every step is one transaction, one call of the broker, or one message to its
//! receiver.

use super::setup::{EventFault, EventsSetup, Unsent};
use super::state::{
    ATTEMPTS_MAX, CANCELLED, CONFIRMED, KINDS, Message, OVERPAID, PAID, PROCESSES, Page, Progress, Publishing, REFUND,
};
use seckill::domain::order_life::{OrderEvent, OrderState, OrderTransition};

/// The tables of events, as bits: `outcome_event`, `order_events`.
const TABLES: [u8; 2] = [1 << CONFIRMED, 1 << PAID | 1 << CANCELLED | 1 << REFUND | 1 << OVERPAID];

/// A step; the number is a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventStep {
    Deliver,
    /// The consumer goes on with the message.
    Consumer,
    Compensate,
    CleanDeadLetters,
    Changes(OrderEvent),
    /// Mutation: the row of a change that is committed.
    WritesRow,
    Reads(usize, u8),
    Publishes(usize),
    Deletes(usize),
    /// Costs one of the faults that are left.
    Fault(EventFault, usize),
}

/// Whether nothing happens any more unless the order is changed, or a fault does something.
pub fn is_quiet(publishing: &Publishing) -> bool {
    let mut out = Vec::new();
    by_itself(publishing, &mut out);
    out.is_empty()
}

pub fn by_itself(publishing: &Publishing, out: &mut Vec<EventStep>) {
    match publishing.message {
        Message::Queued(_) => out.push(EventStep::Deliver),
        Message::Held(..) => out.push(EventStep::Consumer),
        Message::Parked if publishing.order.is_some() => out.push(EventStep::CleanDeadLetters),
        Message::Parked | Message::Gone => {}
    }
    // The ledger has it: P5 may write it at any moment.
    if publishing.order.is_none() {
        out.push(EventStep::Compensate);
    }
    if publishing.unwritten > 0 {
        out.push(EventStep::WritesRow);
    }
    let waiting = publishing.bits(|event| event.row);
    for publisher in 0..PROCESSES {
        match publishing.pages[publisher] {
            Page::None if publisher > 0 && publishing.pages[0] == Page::None => {}
            Page::None => {
                for table in TABLES.iter().filter(|table| waiting & *table > 0) {
                    out.push(EventStep::Reads(publisher, waiting & table));
                }
            }
            Page::Read(_) => out.push(EventStep::Publishes(publisher)),
            Page::Confirmed(_) => out.push(EventStep::Deletes(publisher)),
        }
    }
}

/// What a person or a provider does to the order.
pub fn by_chance(publishing: &Publishing, out: &mut Vec<EventStep>) {
    let Some(state) = publishing.order else { return };
    for event in [OrderEvent::PaymentReceived, OrderEvent::CancelledByOperator] {
        let changes = matches!(state.after(event), OrderTransition::To(_));
        if changes || is_paid_again(publishing, event) {
            out.push(EventStep::Changes(event));
        }
    }
}

/// A paid order gets money again: once here.
fn is_paid_again(publishing: &Publishing, event: OrderEvent) -> bool {
    let again = (publishing.order, event) == (Some(OrderState::Paid), OrderEvent::PaymentReceived);
    again && publishing.events[OVERPAID].version == 0
}

pub fn faults(setup: &EventsSetup, publishing: &Publishing, out: &mut Vec<EventStep>) {
    let mut fault = |happens: bool, kind, at| {
        if happens && publishing.faults_left > 0 && setup.kinds.contains(&kind) {
            out.push(EventStep::Fault(kind, at));
        }
    };
    let progress = if let Message::Held(_, progress) = publishing.message { Some(progress) } else { None };
    fault(progress.is_some(), EventFault::ConsumerDies, 0);
    for kind in [EventFault::SystemError, EventFault::UnknownCommit] {
        fault(progress == Some(Progress::Received), kind, 0);
    }
    let is_there = matches!(publishing.message, Message::Queued(_)) || progress.is_some();
    fault(is_there && progress != Some(Progress::DecidedQueueLost), EventFault::MessageLost, 0);
    fault(publishing.unwritten > 0, EventFault::WriterDies, 0);
    let sends = matches!(progress, Some(Progress::Decided | Progress::DecidedQueueLost | Progress::AckedEarly));
    for kind in [EventFault::NotTaken, EventFault::ConfirmLost] {
        fault(sends, kind, PROCESSES);
    }
    for (publisher, page) in publishing.pages.iter().enumerate() {
        fault(*page != Page::None, EventFault::PublisherDies, publisher);
        fault(matches!(page, Page::Read(_)), EventFault::NotTaken, publisher);
        fault(matches!(page, Page::Read(_)), EventFault::ConfirmLost, publisher);
    }
}

pub fn apply(setup: &EventsSetup, publishing: &mut Publishing, step: EventStep) {
    match step {
        EventStep::Deliver => {
            if let Message::Queued(attempts) = publishing.message {
                publishing.message = Message::Held(attempts, Progress::Received);
            }
        }
        EventStep::Consumer => go_on(setup, publishing),
        EventStep::Compensate => {
            confirm(publishing);
            publishing.events[CONFIRMED].row |= !setup.lacks(Unsent::RowOfCompensation);
        }
        EventStep::CleanDeadLetters => {
            publishing.events[CONFIRMED].row |= !setup.lacks(Unsent::EventOfDeadLetter);
            publishing.message = Message::Gone;
        }
        EventStep::Changes(event) => change(setup, publishing, event),
        EventStep::WritesRow => {
            let bits = std::mem::take(&mut publishing.unwritten);
            write_rows(publishing, bits);
        }
        EventStep::Reads(publisher, page) => {
            publishing.pages[publisher] = Page::Read(page);
            if setup.lacks(Unsent::DeletedAfterConfirm) {
                delete_rows(publishing, page);
            }
        }
        EventStep::Publishes(publisher) => {
            if let Page::Read(page) = publishing.pages[publisher] {
                receive(setup, publishing, page);
                publishing.pages[publisher] = Page::Confirmed(page);
            }
        }
        EventStep::Deletes(publisher) => {
            if let Page::Confirmed(page) = std::mem::take(&mut publishing.pages[publisher]) {
                let table = TABLES.into_iter().find(|table| table & page > 0).unwrap_or(page);
                delete_rows(publishing, if setup.lacks(Unsent::OwnRowsDeleted) { table } else { page });
            }
        }
        EventStep::Fault(kind, at) => {
            publishing.faults_left -= 1;
            strike(setup, publishing, kind, at);
        }
    }
}

fn strike(setup: &EventsSetup, publishing: &mut Publishing, kind: EventFault, at: usize) {
    match kind {
        EventFault::ConsumerDies => {
            publishing.message = match publishing.message {
                Message::Held(_, Progress::AckedEarly | Progress::DecidedQueueLost) => Message::Gone,
                Message::Held(attempts, _) => Message::Queued(attempts),
                other @ (Message::Queued(_) | Message::Parked | Message::Gone) => other,
            };
        }
        EventFault::SystemError => send_back(publishing),
        EventFault::UnknownCommit => {
            confirm(publishing);
            send_back(publishing);
        }
        EventFault::MessageLost => {
            publishing.message = match publishing.message {
                Message::Held(attempts, Progress::Decided) if !setup.lacks(Unsent::EventsOutliveQueue) => {
                    Message::Held(attempts, Progress::DecidedQueueLost)
                }
                Message::Held(..) | Message::Queued(_) | Message::Parked | Message::Gone => Message::Gone,
            };
        }
        EventFault::WriterDies => publishing.unwritten = 0,
        EventFault::PublisherDies => publishing.pages[at] = Page::None,
        EventFault::NotTaken | EventFault::ConfirmLost if at < PROCESSES => {
            // Without the confirm the page is read and sent again.
            if let Page::Read(page) = std::mem::take(&mut publishing.pages[at])
                && kind == EventFault::ConfirmLost
            {
                receive(setup, publishing, page);
            }
        }
        EventFault::NotTaken | EventFault::ConfirmLost => {
            if kind == EventFault::ConfirmLost {
                receive(setup, publishing, 1 << CONFIRMED);
            }
            publishing.events[CONFIRMED].row |= !setup.lacks(Unsent::StoredWhenNotTaken);
            published(publishing);
        }
    }
}

/// The next thing the consumer does by itself with the message.
fn go_on(setup: &EventsSetup, publishing: &mut Publishing) {
    let Message::Held(attempts, progress) = publishing.message else { return };
    match progress {
        Progress::Received if setup.lacks(Unsent::CommitBeforeEvent) && !publishing.events[CONFIRMED].received => {
            receive(setup, publishing, 1 << CONFIRMED);
        }
        Progress::Received => {
            // The outcome of P5 is found: its event is published all the same.
            confirm(publishing);
            let acked = setup.lacks(Unsent::EventBeforeAck);
            let next = if acked { Progress::AckedEarly } else { Progress::Decided };
            publishing.message = Message::Held(attempts, next);
        }
        Progress::Decided | Progress::DecidedQueueLost | Progress::AckedEarly => {
            receive(setup, publishing, 1 << CONFIRMED);
            published(publishing);
        }
        Progress::Published => publishing.message = Message::Gone,
    }
}

fn published(publishing: &mut Publishing) {
    publishing.message = match publishing.message {
        Message::Held(attempts, Progress::Decided) => Message::Held(attempts, Progress::Published),
        Message::Held(..) | Message::Queued(_) | Message::Parked | Message::Gone => Message::Gone,
    };
}

/// A copy goes to a retry queue, or to the MQ DLQ after the last try.
fn send_back(publishing: &mut Publishing) {
    if let Message::Held(attempts, _) = publishing.message {
        let spent = attempts + 1 >= ATTEMPTS_MAX;
        publishing.message = if spent { Message::Parked } else { Message::Queued(attempts + 1) };
    }
}

/// The order is written, unless it is there.
fn confirm(publishing: &mut Publishing) {
    if publishing.order.is_none() {
        (publishing.order, publishing.version) = (Some(OrderState::Unpaid), 1);
        publishing.events[CONFIRMED].version = 1;
    }
}

/// A change of the order, with its events: money of a cancelled order goes back.
fn change(setup: &EventsSetup, publishing: &mut Publishing, event: OrderEvent) {
    let Some(before) = publishing.order else { return };
    let after = if let OrderTransition::To(to) = before.after(event) { to } else { before };
    publishing.order = Some(after);
    let kinds: &[usize] = match (before, after) {
        (OrderState::Paid, OrderState::Paid) => &[OVERPAID],
        (OrderState::Paid, OrderState::Cancelled) => &[CANCELLED, REFUND],
        (_, OrderState::Paid) => &[PAID],
        _ => &[CANCELLED],
    };
    let mut bits = 0;
    for kind in kinds {
        publishing.version += 1;
        publishing.events[*kind].version = publishing.version;
        bits |= 1 << kind;
    }
    if setup.lacks(Unsent::RowWithItsChange) {
        publishing.unwritten |= bits;
    } else {
        write_rows(publishing, bits);
    }
}

fn write_rows(publishing: &mut Publishing, bits: u8) {
    for kind in of(bits) {
        publishing.events[kind].row = true;
    }
}

fn delete_rows(publishing: &mut Publishing, bits: u8) {
    for kind in of(bits) {
        publishing.events[kind].row = false;
    }
}

/// The subscriber's queue gets these events, and the receiver goes by its rule.
fn receive(setup: &EventsSetup, publishing: &mut Publishing, bits: u8) {
    for kind in of(bits) {
        let event = &mut publishing.events[kind];
        publishing.twice |= event.received;
        event.received = true;
        let known = &mut publishing.receiver;
        let is_newer = event.version > known.version;
        if kind >= REFUND {
            known.refunds |= u8::from(is_newer || !setup.lacks(Unsent::RefundsKept)) << kind;
        } else if is_newer || setup.lacks(Unsent::OlderVersionsDropped) {
            known.went_back |= event.version < known.version;
            known.version = event.version;
        }
    }
}

fn of(bits: u8) -> impl Iterator<Item = usize> {
    (0..KINDS).filter(move |kind| bits & (1 << kind) > 0)
}
