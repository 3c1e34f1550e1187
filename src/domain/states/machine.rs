//! The transition table as a function: state × event → where to, already there, or illegal.
//!
//! P3, P4 and P5 move a request through [`State::after`]; tests/model searches the same table. `Already` makes repeats
//! harmless: the same event again changes nothing. `Illegal` is a bug or a forgery: the caller logs it and does not move.
//! Every pair is written out per phase; a new state or event does not compile until someone decides.

use super::codes::{P1Entry, P2Reserve, P3Relay, P4Persist, P5Reconcile, P6Fulfil, Phase};

/// A state of any phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// P1, entry: before Redis.
    P1(P1Entry),
    /// P2, reserve: in Redis.
    P2(P2Reserve),
    /// P3, relay: from Redis to the broker.
    P3(P3Relay),
    /// P4, persist: from the broker to the database.
    P4(P4Persist),
    /// P5, reconcile: found by an audit.
    P5(P5Reconcile),
    /// P6, fulfil: an order after it was confirmed.
    P6(P6Fulfil),
}

macro_rules! per_phase {
    ($self:ident, $state:ident => $body:expr) => {
        match $self {
            State::P1($state) => $body,
            State::P2($state) => $body,
            State::P3($state) => $body,
            State::P4($state) => $body,
            State::P5($state) => $body,
            State::P6($state) => $body,
        }
    };
}

impl State {
    /// The code, e.g. `P3-N2`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        per_phase!(self, s => s.code())
    }
    /// The label, e.g. `SENT_OK`.
    #[must_use]
    pub(crate) const fn label(self) -> &'static str {
        per_phase!(self, s => s.label())
    }
    /// What it means.
    #[must_use]
    pub(crate) const fn meaning(self) -> &'static str {
        per_phase!(self, s => s.meaning())
    }
    /// The phase it belongs to.
    #[must_use]
    pub const fn phase(self) -> Phase {
        match self {
            Self::P1(_) => Phase::P1Entry,
            Self::P2(_) => Phase::P2Reserve,
            Self::P3(_) => Phase::P3Relay,
            Self::P4(_) => Phase::P4Persist,
            Self::P5(_) => Phase::P5Reconcile,
            Self::P6(_) => Phase::P6Fulfil,
        }
    }

    /// The state after `event`. An event that repeats or comes late leaves the state as it is.
    pub const fn after(self, event: RequestEvent) -> Result<Self, IllegalTransition> {
        match next(self, event) {
            Transition::To(state) => Ok(state),
            Transition::Already => Ok(self),
            Transition::Illegal => Err(IllegalTransition { from: self, event }),
        }
    }
}

/// A transition that the table forbids: a bug or a forgery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("contract violation: {event:?} must not happen in state {}", from.code())]
pub struct IllegalTransition {
    /// The state of the request before the event.
    pub from: State,
    /// The event that the table forbids in this state.
    pub event: RequestEvent,
}

/// What can happen to a request after it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestEvent {
    /// A relay read the entry, or claimed it from one that died.
    Read,
    /// The broker confirmed the message.
    Confirmed,
    /// Nack, return or timeout, attempts left.
    PublishFailed,
    /// Nack, return or timeout, attempts spent; or the entry is unreadable.
    PublishSpent,
    /// The transaction that writes the order was committed.
    OrderCommitted,
    /// The outcome was there already, with the same fingerprint.
    OutcomeFound,
    /// A business refusal was committed.
    RefusalCommitted,
    /// A system error, attempts left.
    PersistFailed,
    /// A system error, attempts spent; or the message is unreadable or in conflict.
    PersistSpent,
    /// The audit found no outcome after the window.
    OutcomeMissing,
}

impl RequestEvent {
    /// Every event, in the order of declaration.
    pub const ALL: [Self; 10] = [
        Self::Read,
        Self::Confirmed,
        Self::PublishFailed,
        Self::PublishSpent,
        Self::OrderCommitted,
        Self::OutcomeFound,
        Self::RefusalCommitted,
        Self::PersistFailed,
        Self::PersistSpent,
        Self::OutcomeMissing,
    ];
}

/// The table's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Transition {
    /// Move to this state.
    To(State),
    /// Nothing changes; the event is a repeat or came late.
    Already,
    /// It must not happen.
    Illegal,
}

const fn relay(to: P3Relay) -> Transition {
    Transition::To(State::P3(to))
}
const fn persist(to: P4Persist) -> Transition {
    Transition::To(State::P4(to))
}
const fn reconcile(to: P5Reconcile) -> Transition {
    Transition::To(State::P5(to))
}

/// What follows `state` when `event` happens.
#[must_use]
pub const fn next(state: State, event: RequestEvent) -> Transition {
    match state {
        // Nothing was taken: nothing can happen to it later. P2 answers for the request, not P1.
        State::P1(_) => Transition::Illegal,
        State::P2(state) => after_reserve(state, event),
        State::P3(state) => after_relay(state, event),
        State::P4(state) => after_persist(state, event),
        State::P5(state) => after_reconcile(state, event),
        // An order is not moved by what happens to requests: domain/order_life.rs has its table.
        State::P6(_) => Transition::Illegal,
    }
}

const fn after_reserve(state: P2Reserve, event: RequestEvent) -> Transition {
    match state {
        // The script's own XADD made the outbox entry: accepted is P3-N0.
        P2Reserve::Reserved | P2Reserve::Replayed => after_relay(P3Relay::New, event),
        P2Reserve::Duplicate
        | P2Reserve::SoldOut
        | P2Reserve::BucketEmpty
        | P2Reserve::BucketAllEmpty
        | P2Reserve::LimitExceeded
        | P2Reserve::NotEnough => Transition::Illegal,
    }
}

const fn after_relay(state: P3Relay, event: RequestEvent) -> Transition {
    match (state, event) {
        (P3Relay::New, RequestEvent::Read) => relay(P3Relay::Pending),
        (P3Relay::Pending | P3Relay::Retrying, RequestEvent::Read) => Transition::Already,
        (P3Relay::Pending | P3Relay::Retrying, RequestEvent::Confirmed) => relay(P3Relay::SentOk),
        (P3Relay::Pending, RequestEvent::PublishFailed) => relay(P3Relay::Retrying),
        (P3Relay::Retrying, RequestEvent::PublishFailed) => Transition::Already,
        (P3Relay::Pending | P3Relay::Retrying, RequestEvent::PublishSpent) => relay(P3Relay::RelayDlq),
        // A stale relay's verdict on an entry another relay finished (windows 28, 29, 45).
        (
            P3Relay::SentOk | P3Relay::RelayDlq,
            RequestEvent::Read | RequestEvent::Confirmed | RequestEvent::PublishFailed | RequestEvent::PublishSpent,
        ) => Transition::Already,
        (P3Relay::New, RequestEvent::Confirmed | RequestEvent::PublishFailed | RequestEvent::PublishSpent) => {
            Transition::Illegal
        }
        // The broker may deliver before its confirm is seen, or after the entry was parked: the database decides.
        (
            P3Relay::Pending | P3Relay::Retrying | P3Relay::SentOk | P3Relay::RelayDlq,
            RequestEvent::OrderCommitted
            | RequestEvent::RefusalCommitted
            | RequestEvent::OutcomeFound
            | RequestEvent::PersistFailed
            | RequestEvent::PersistSpent,
        ) => after_delivery(event),
        // P5 may compensate at any moment; the outcome's key makes the race safe.
        (P3Relay::New, RequestEvent::OrderCommitted | RequestEvent::RefusalCommitted | RequestEvent::OutcomeFound) => {
            after_delivery(event)
        }
        (P3Relay::New, RequestEvent::PersistFailed | RequestEvent::PersistSpent) => Transition::Illegal,
        (
            P3Relay::New | P3Relay::Pending | P3Relay::Retrying | P3Relay::SentOk | P3Relay::RelayDlq,
            RequestEvent::OutcomeMissing,
        ) => reconcile(P5Reconcile::Leak),
    }
}

const fn after_delivery(event: RequestEvent) -> Transition {
    match event {
        RequestEvent::OrderCommitted => persist(P4Persist::DbOk),
        RequestEvent::RefusalCommitted => persist(P4Persist::BizErrorAck),
        RequestEvent::OutcomeFound => persist(P4Persist::Idempotent),
        RequestEvent::PersistFailed => persist(P4Persist::SysErrorRetry),
        RequestEvent::PersistSpent => persist(P4Persist::MqDlq),
        RequestEvent::Read
        | RequestEvent::Confirmed
        | RequestEvent::PublishFailed
        | RequestEvent::PublishSpent
        | RequestEvent::OutcomeMissing => Transition::Illegal,
    }
}

const fn after_persist(state: P4Persist, event: RequestEvent) -> Transition {
    match (state, event) {
        // One outcome: a second commit of either kind is impossible by the outcome's primary key.
        (
            P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck,
            RequestEvent::OrderCommitted | RequestEvent::RefusalCommitted | RequestEvent::OutcomeMissing,
        ) => Transition::Illegal,
        (
            P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck,
            RequestEvent::OutcomeFound | RequestEvent::PersistFailed | RequestEvent::PersistSpent,
        ) => Transition::Already,
        (P4Persist::SysErrorRetry, RequestEvent::PersistFailed) => Transition::Already,
        (P4Persist::SysErrorRetry, RequestEvent::PersistSpent) => persist(P4Persist::MqDlq),
        (P4Persist::MqDlq, RequestEvent::PersistFailed | RequestEvent::PersistSpent) => Transition::Already,
        (
            P4Persist::SysErrorRetry | P4Persist::MqDlq,
            RequestEvent::OrderCommitted | RequestEvent::RefusalCommitted | RequestEvent::OutcomeFound,
        ) => after_delivery(event),
        (P4Persist::SysErrorRetry | P4Persist::MqDlq, RequestEvent::OutcomeMissing) => reconcile(P5Reconcile::Leak),
        // The relay's side may still be publishing a repeat of it: harmless.
        (
            P4Persist::DbOk
            | P4Persist::Idempotent
            | P4Persist::BizErrorAck
            | P4Persist::SysErrorRetry
            | P4Persist::MqDlq,
            RequestEvent::Read | RequestEvent::Confirmed | RequestEvent::PublishFailed | RequestEvent::PublishSpent,
        ) => Transition::Already,
    }
}

const fn after_reconcile(state: P5Reconcile, event: RequestEvent) -> Transition {
    match (state, event) {
        (P5Reconcile::Leak, RequestEvent::OrderCommitted) => reconcile(P5Reconcile::Compensated),
        (P5Reconcile::Leak, RequestEvent::RefusalCommitted) => reconcile(P5Reconcile::FailedFinal),
        (P5Reconcile::Leak, RequestEvent::OutcomeFound) => reconcile(P5Reconcile::Match),
        (
            P5Reconcile::Leak,
            RequestEvent::OutcomeMissing | RequestEvent::PersistFailed | RequestEvent::PersistSpent,
        ) => Transition::Already,
        (
            P5Reconcile::Match | P5Reconcile::Compensated | P5Reconcile::FailedFinal,
            RequestEvent::OutcomeFound | RequestEvent::PersistFailed | RequestEvent::PersistSpent,
        ) => Transition::Already,
        (
            P5Reconcile::Match | P5Reconcile::Compensated | P5Reconcile::FailedFinal,
            RequestEvent::OrderCommitted | RequestEvent::RefusalCommitted | RequestEvent::OutcomeMissing,
        ) => Transition::Illegal,
        // For a person: nothing automatic follows (E3).
        (
            P5Reconcile::OverSell | P5Reconcile::Orphan | P5Reconcile::Gap,
            RequestEvent::OrderCommitted
            | RequestEvent::RefusalCommitted
            | RequestEvent::OutcomeFound
            | RequestEvent::OutcomeMissing
            | RequestEvent::PersistFailed
            | RequestEvent::PersistSpent,
        ) => Transition::Illegal,
        (
            P5Reconcile::Match
            | P5Reconcile::Leak
            | P5Reconcile::OverSell
            | P5Reconcile::Orphan
            | P5Reconcile::Gap
            | P5Reconcile::Compensated
            | P5Reconcile::FailedFinal,
            RequestEvent::Read | RequestEvent::Confirmed | RequestEvent::PublishFailed | RequestEvent::PublishSpent,
        ) => Transition::Already,
    }
}
