//! The transition table as a function: state × event → where to, already there, or illegal.
//!
//! `Already` is what makes repeats harmless: the same event again changes nothing. `Illegal` is a bug or a forgery: the
//! caller logs both sides and does not move. Every pair is written out per phase; a new state or event does not compile
//! until someone decides.

use super::codes::{P1Entry, P2Reserve, P3Relay, P4Persist, P5Reconcile};

/// A state of any phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    /// Entry.
    P1(P1Entry),
    /// Reserve.
    P2(P2Reserve),
    /// Relay.
    P3(P3Relay),
    /// Persist.
    P4(P4Persist),
    /// Reconcile.
    P5(P5Reconcile),
}

macro_rules! per_phase {
    ($self:ident, $state:ident => $body:expr) => {
        match $self {
            State::P1($state) => $body,
            State::P2($state) => $body,
            State::P3($state) => $body,
            State::P4($state) => $body,
            State::P5($state) => $body,
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
    pub const fn label(self) -> &'static str {
        per_phase!(self, s => s.label())
    }
    /// What it means.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        per_phase!(self, s => s.meaning())
    }
    /// The phase it belongs to.
    #[must_use]
    pub const fn phase(self) -> super::Phase {
        use super::Phase;
        match self {
            Self::P1(_) => Phase::P1Entry,
            Self::P2(_) => Phase::P2Reserve,
            Self::P3(_) => Phase::P3Relay,
            Self::P4(_) => Phase::P4Persist,
            Self::P5(_) => Phase::P5Reconcile,
        }
    }
}

/// What can happen to a request after it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// A relay read the entry, or claimed it from one that died.
    Read,
    /// The broker confirmed the message.
    Confirmed,
    /// Nack, return or timeout, attempts left.
    PublishFailed,
    /// Nack, return or timeout, attempts spent; or the entry is unreadable.
    PublishSpent,
    /// The landing transaction committed the order.
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

impl Event {
    /// Every event.
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
pub enum Step {
    /// Move to this state.
    To(State),
    /// Nothing changes; the event is a repeat or came late.
    Already,
    /// It must not happen.
    Illegal,
}

const fn relay(to: P3Relay) -> Step {
    Step::To(State::P3(to))
}
const fn persist(to: P4Persist) -> Step {
    Step::To(State::P4(to))
}
const fn reconcile(to: P5Reconcile) -> Step {
    Step::To(State::P5(to))
}

/// What follows `state` when `event` happens.
#[must_use]
pub const fn next(state: State, event: Event) -> Step {
    match state {
        // Nothing was taken: nothing can happen to it later. P2 answers for the request, not P1.
        State::P1(_) => Step::Illegal,
        State::P2(state) => after_reserve(state, event),
        State::P3(state) => after_relay(state, event),
        State::P4(state) => after_persist(state, event),
        State::P5(state) => after_reconcile(state, event),
    }
}

const fn after_reserve(state: P2Reserve, event: Event) -> Step {
    match state {
        // The script's own XADD made the outbox entry: accepted is P3-N0.
        P2Reserve::Reserved | P2Reserve::Replayed => after_relay(P3Relay::New, event),
        P2Reserve::Duplicate
        | P2Reserve::SoldOut
        | P2Reserve::BucketEmpty
        | P2Reserve::BucketAllEmpty
        | P2Reserve::LimitExceeded
        | P2Reserve::NotEnough => Step::Illegal,
    }
}

const fn after_relay(state: P3Relay, event: Event) -> Step {
    match (state, event) {
        (P3Relay::New, Event::Read) => relay(P3Relay::Pending),
        (P3Relay::Pending | P3Relay::Retrying, Event::Read) => Step::Already,
        (P3Relay::Pending | P3Relay::Retrying, Event::Confirmed) => relay(P3Relay::SentOk),
        (P3Relay::Pending, Event::PublishFailed) => relay(P3Relay::Retrying),
        (P3Relay::Retrying, Event::PublishFailed) => Step::Already,
        (P3Relay::Pending | P3Relay::Retrying, Event::PublishSpent) => relay(P3Relay::RelayDlq),
        // A stale relay's verdict on an entry another relay finished (windows 28, 29, 45).
        (
            P3Relay::SentOk | P3Relay::RelayDlq,
            Event::Read | Event::Confirmed | Event::PublishFailed | Event::PublishSpent,
        ) => Step::Already,
        (P3Relay::New, Event::Confirmed | Event::PublishFailed | Event::PublishSpent) => Step::Illegal,
        // The broker may deliver before its confirm is seen, or after the entry was parked: the database decides.
        (
            P3Relay::Pending | P3Relay::Retrying | P3Relay::SentOk | P3Relay::RelayDlq,
            Event::OrderCommitted
            | Event::RefusalCommitted
            | Event::OutcomeFound
            | Event::PersistFailed
            | Event::PersistSpent,
        ) => landed(event),
        // P5 may compensate at any moment; the outcome's key makes the race safe.
        (P3Relay::New, Event::OrderCommitted | Event::RefusalCommitted | Event::OutcomeFound) => landed(event),
        (P3Relay::New, Event::PersistFailed | Event::PersistSpent) => Step::Illegal,
        (
            P3Relay::New | P3Relay::Pending | P3Relay::Retrying | P3Relay::SentOk | P3Relay::RelayDlq,
            Event::OutcomeMissing,
        ) => reconcile(P5Reconcile::Leak),
    }
}

const fn landed(event: Event) -> Step {
    match event {
        Event::OrderCommitted => persist(P4Persist::DbOk),
        Event::RefusalCommitted => persist(P4Persist::BizErrorAck),
        Event::OutcomeFound => persist(P4Persist::Idempotent),
        Event::PersistFailed => persist(P4Persist::SysErrorRetry),
        Event::PersistSpent => persist(P4Persist::MqDlq),
        Event::Read | Event::Confirmed | Event::PublishFailed | Event::PublishSpent | Event::OutcomeMissing => {
            Step::Illegal
        }
    }
}

const fn after_persist(state: P4Persist, event: Event) -> Step {
    match (state, event) {
        // One outcome: a second commit of either kind is impossible by the outcome's primary key.
        (
            P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck,
            Event::OrderCommitted | Event::RefusalCommitted | Event::OutcomeMissing,
        ) => Step::Illegal,
        (
            P4Persist::DbOk | P4Persist::Idempotent | P4Persist::BizErrorAck,
            Event::OutcomeFound | Event::PersistFailed | Event::PersistSpent,
        ) => Step::Already,
        (P4Persist::SysErrorRetry, Event::PersistFailed) => Step::Already,
        (P4Persist::SysErrorRetry, Event::PersistSpent) => persist(P4Persist::MqDlq),
        (P4Persist::MqDlq, Event::PersistFailed | Event::PersistSpent) => Step::Already,
        (
            P4Persist::SysErrorRetry | P4Persist::MqDlq,
            Event::OrderCommitted | Event::RefusalCommitted | Event::OutcomeFound,
        ) => landed(event),
        (P4Persist::SysErrorRetry | P4Persist::MqDlq, Event::OutcomeMissing) => reconcile(P5Reconcile::Leak),
        // The relay's side may still be publishing a repeat of it: harmless.
        (
            P4Persist::DbOk
            | P4Persist::Idempotent
            | P4Persist::BizErrorAck
            | P4Persist::SysErrorRetry
            | P4Persist::MqDlq,
            Event::Read | Event::Confirmed | Event::PublishFailed | Event::PublishSpent,
        ) => Step::Already,
    }
}

const fn after_reconcile(state: P5Reconcile, event: Event) -> Step {
    match (state, event) {
        (P5Reconcile::Leak, Event::OrderCommitted) => reconcile(P5Reconcile::Compensated),
        (P5Reconcile::Leak, Event::RefusalCommitted) => reconcile(P5Reconcile::FailedFinal),
        (P5Reconcile::Leak, Event::OutcomeFound) => reconcile(P5Reconcile::Match),
        (P5Reconcile::Leak, Event::OutcomeMissing | Event::PersistFailed | Event::PersistSpent) => Step::Already,
        (
            P5Reconcile::Match | P5Reconcile::Compensated | P5Reconcile::FailedFinal,
            Event::OutcomeFound | Event::PersistFailed | Event::PersistSpent,
        ) => Step::Already,
        (
            P5Reconcile::Match | P5Reconcile::Compensated | P5Reconcile::FailedFinal,
            Event::OrderCommitted | Event::RefusalCommitted | Event::OutcomeMissing,
        ) => Step::Illegal,
        // For a person: nothing automatic follows (E3).
        (
            P5Reconcile::OverSell | P5Reconcile::Orphan | P5Reconcile::Gap,
            Event::OrderCommitted
            | Event::RefusalCommitted
            | Event::OutcomeFound
            | Event::OutcomeMissing
            | Event::PersistFailed
            | Event::PersistSpent,
        ) => Step::Illegal,
        (
            P5Reconcile::Match
            | P5Reconcile::Leak
            | P5Reconcile::OverSell
            | P5Reconcile::Orphan
            | P5Reconcile::Gap
            | P5Reconcile::Compensated
            | P5Reconcile::FailedFinal,
            Event::Read | Event::Confirmed | Event::PublishFailed | Event::PublishSpent,
        ) => Step::Already,
    }
}
