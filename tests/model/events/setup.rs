//! What one search about events has: which faults may happen, and which mechanism is left out.

use std::fmt;

/// A mechanism that is left out, or done wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// The row of an event is written in a later transaction than the change.
    RowWithItsChange,
    /// P5 writes no row: the message's consumer would publish the event.
    RowOfCompensation,
    /// A message is acknowledged before its event is published.
    EventBeforeAck,
    /// An event that the broker does not take from a consumer is dropped.
    StoredWhenNotTaken,
    /// A consumer that loses its queue drops the events of what it has committed.
    EventsOutliveQueue,
    /// A dead letter whose request is decided is removed without its event.
    EventOfDeadLetter,
    /// An event is published before its change is committed.
    CommitBeforeEvent,
    /// A publisher deletes rows as it reads them.
    DeletedAfterConfirm,
    /// A publisher deletes whatever rows there are, not those of its page.
    OwnRowsDeleted,
    /// A receiver takes whatever state comes last.
    OlderVersionsDropped,
    /// A receiver drops refunds, too, whose version is not above its last one.
    RefundsKept,
}

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventFault {
    /// The process of a consumer dies: what it had not acknowledged comes again.
    ConsumerDies,
    /// The process of a publisher dies and forgets its page.
    PublisherDies,
    /// The process that changed an order dies; only where its event is a later transaction.
    WriterDies,
    /// The broker takes no events.
    NotTaken,
    /// It has the events, and the confirm is lost.
    ConfirmLost,
    /// The database refuses a transaction of the consumer for now.
    SystemError,
    /// It commits it, and the answer is lost.
    UnknownCommit,
    /// The order queue is purged, or its broker loses its disk.
    MessageLost,
}

/// One search.
#[derive(Clone, Copy, Debug)]
pub struct EventsSetup {
    pub faults: u8,
    pub kinds: &'static [EventFault],
    pub absent: Option<Unsent>,
}

impl EventsSetup {
    pub fn lacks(&self, mechanism: Unsent) -> bool {
        self.absent == Some(mechanism)
    }
}

impl fmt::Display for EventsSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} fault{}", self.faults, if self.faults == 1 { "" } else { "s" })
    }
}
