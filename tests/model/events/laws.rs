//! What must always hold of events, and what their searches must have seen to be worth anything.

use super::setup::EventsSetup;
use super::state::{CONFIRMED, KINDS, Message, PAID, Page, Publishing, REFUND};
use super::steps::is_quiet;
use stateright::Property;

/// Name and meaning of what must always hold.
pub const LAWS: [(&str, &str); 4] = [
    (
        "E1",
        "what happened to an order is never only in the memory of a process: the subscriber has the event, or its row is there, or \
         the request's message, which brings it again",
    ),
    ("E2", "no subscriber has an event of what did not happen"),
    ("E3", "when nothing happens any more, each subscriber has each event, and no row is left"),
    (
        "E4",
        "a receiver that drops states of older versions never goes back; when nothing happens any more, it has the order's state, \
         and knows of money that has to go back",
    ),
];

/// Situations that must be reached.
pub const SIGHTS: [(&str, &str); 6] = [
    ("sent twice", "a subscriber gets an event again"),
    ("late event", "PAID is about to be sent although the subscriber has CANCELLED"),
    ("both publishers", "two processes have read the same row"),
    ("decided dead letter", "a message is in the MQ DLQ although its order is written"),
    ("after P5", "a consumer has the message of an order that P5 wrote"),
    ("refund first", "the subscriber has REFUND_NEEDED and not yet CONFIRMED"),
];

pub fn all() -> Vec<Property<EventsSetup>> {
    let [e1, e2, e3, e4] = LAWS.map(|(name, _)| name);
    let [s1, s2, s3, s4, s5, s6] = SIGHTS.map(|(name, _)| name);
    vec![
        Property::always(e1, |_, publishing: &Publishing| (0..KINDS).all(|kind| is_at_rest(publishing, kind))),
        Property::always(e2, |_, publishing: &Publishing| {
            publishing.events.iter().all(|event| !event.received || event.version > 0)
        }),
        Property::always(e3, |_, publishing: &Publishing| {
            let is_sent = |event: &super::state::OneEvent| event.received == (event.version > 0) && !event.row;
            publishing.events.iter().all(is_sent) || !is_quiet(publishing)
        }),
        Property::always(e4, receivers_are_right),
        Property::sometimes(s1, |_, publishing: &Publishing| publishing.twice),
        Property::sometimes(s2, |_, publishing: &Publishing| {
            let reads_paid = |page: &Page| matches!(page, Page::Read(page) if page & (1 << PAID) > 0);
            publishing.receiver.version > publishing.events[PAID].version && publishing.pages.iter().any(reads_paid)
        }),
        Property::sometimes(
            s3,
            |_, publishing: &Publishing| matches!(publishing.pages, [Page::Read(one), Page::Read(other)] if one & other > 0),
        ),
        Property::sometimes(s4, |_, publishing: &Publishing| {
            publishing.message == Message::Parked && publishing.order.is_some()
        }),
        Property::sometimes(s5, |_, publishing: &Publishing| {
            matches!(publishing.message, Message::Held(..)) && publishing.events[CONFIRMED].row
        }),
        Property::sometimes(s6, |_, publishing: &Publishing| {
            publishing.events[REFUND].received && !publishing.events[CONFIRMED].received
        }),
    ]
}

/// E1.
fn is_at_rest(publishing: &Publishing, kind: usize) -> bool {
    let event = publishing.events[kind];
    let by_message = kind == CONFIRMED && publishing.message != Message::Gone;
    let acked = matches!(publishing.message, Message::Held(_, super::state::Progress::AckedEarly));
    event.version == 0 || event.received || event.row || (by_message && !acked)
}

/// E4.
fn receivers_are_right(_: &EventsSetup, publishing: &Publishing) -> bool {
    let Publishing { receiver, order, .. } = publishing;
    let is_right = receiver.version == publishing.last_state()
        && receiver.refunds == publishing.bits(|event| event.version > 0) >> REFUND << REFUND
        && (receiver.version == 0) == order.is_none();
    !receiver.went_back && (is_right || !is_quiet(publishing))
}
