//! One moment of a request, of its order's events, and of who sends them.

use super::setup::EventsSetup;
use seckill::domain::order_life::OrderState;

/// Consumers, and publishers.
pub const PROCESSES: usize = 2;
/// Tries of the message before it is a dead letter.
pub const ATTEMPTS_MAX: u8 = 2;

/// What is published of an order, in the order of a life: the places of [`Publishing::events`].
pub const CONFIRMED: usize = 0;
pub const PAID: usize = 1;
pub const CANCELLED: usize = 2;
pub const REFUND: usize = 3;
/// Money that a paid order got once more goes back.
pub const OVERPAID: usize = 4;
pub const KINDS: usize = 5;

/// One event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OneEvent {
    /// Of the order after the change; 0: it has not happened.
    pub version: u8,
    /// Its row waits for a publisher.
    pub row: bool,
    /// The subscriber's queue got it, once or more.
    pub received: bool,
}

/// How far a consumer is with the request's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Progress {
    Received,
    /// The outcome is committed, its event is due.
    Decided,
    /// The same, and its queue is lost with the message: it does not come again.
    DecidedQueueLost,
    /// The broker has the event, or the database its row; the ack is due.
    Published,
    /// Mutation: acknowledged, and its event is due.
    AckedEarly,
}

/// Where the message of the request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// In the order queue or a retry queue, after this many tries.
    Queued(u8),
    /// In the hand of a consumer.
    Held(u8, Progress),
    /// In the MQ DLQ.
    Parked,
    Gone,
}

/// What a publisher has in memory: events of one table, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Page {
    #[default]
    None,
    Read(u8),
    /// The broker has confirmed them; the rows are deleted next.
    Confirmed(u8),
}

/// What a receiver knows that follows the rule of `docs/asyncapi.yaml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Known {
    /// The version of the last state that it took.
    pub version: u8,
    /// Refunds that it knows of, as bits.
    pub refunds: u8,
    /// It went back to an older state.
    pub went_back: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Publishing {
    pub order: Option<OrderState>,
    pub version: u8,
    pub events: [OneEvent; KINDS],
    pub message: Message,
    pub pages: [Page; PROCESSES],
    /// Mutation: events of committed changes that their process has not written yet, as bits.
    pub unwritten: u8,
    pub receiver: Known,
    pub faults_left: u8,
    /// An event was sent again although the subscriber had it.
    pub twice: bool,
}

impl Publishing {
    pub fn start(setup: &EventsSetup) -> Self {
        Self {
            order: None,
            version: 0,
            events: [OneEvent::default(); KINDS],
            message: Message::Queued(0),
            pages: [Page::None; PROCESSES],
            unwritten: 0,
            receiver: Known::default(),
            faults_left: setup.faults,
            twice: false,
        }
    }

    /// Which publisher is which does not matter.
    pub fn in_order(mut self) -> Self {
        self.pages.sort_unstable();
        self
    }

    pub fn bits(&self, which: impl Fn(&OneEvent) -> bool) -> u8 {
        (0..KINDS).filter(|kind| which(&self.events[*kind])).map(|kind| 1 << kind).sum()
    }

    /// The version of the last state of the order.
    pub fn last_state(&self) -> u8 {
        self.events[..REFUND].iter().map(|event| event.version).max().unwrap_or(0)
    }
}
