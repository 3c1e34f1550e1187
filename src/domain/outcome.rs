//! The outcome of an accepted request, an order or a recorded failure, and how the database's answers lead to it.
//!
//! Consumer, replay, reconcile and compensation all race on the primary key of `request_outcome`; the first wins and the
//! others learn what was decided. Only business reasons lead to [`Outcome::Failed`]; a system error never does (window 92). A sale
//! that the database does not know is one: Redis accepted the request, so the row was there and is lost, or this is the wrong
//! database.

use super::states::RequestEvent;

/// Why a request will never be an order. The code is stable: it is stored, shown to buyers and used in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FailReason {
    /// The database has no stock left for it.
    SoldOut,
    /// The buyer already has an order in this one-per-user sale.
    DuplicateBuyer,
    /// It would pass the buyer's cumulative limit.
    LimitExceeded,
    /// The database did not know the sale. Never written any more, read from rows of before: such a request is parked now.
    UnknownSale,
    /// An operator gave it up, with a reason in the register.
    GivenUp,
    /// Redis lost data and gave its acceptance number twice, and another request has it; or the number was closed before the request
    /// was persisted.
    NumberReused,
}

impl FailReason {
    pub(crate) const ALL: [Self; 6] = [
        Self::SoldOut,
        Self::DuplicateBuyer,
        Self::LimitExceeded,
        Self::UnknownSale,
        Self::GivenUp,
        Self::NumberReused,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::SoldOut => "SOLD_OUT",
            Self::DuplicateBuyer => "DUPLICATE_BUYER",
            Self::LimitExceeded => "LIMIT_EXCEEDED",
            Self::UnknownSale => "UNKNOWN_SALE",
            Self::GivenUp => "GIVEN_UP",
            Self::NumberReused => "NUMBER_REUSED",
        }
    }

    /// Whether a unit of the sale stands behind the failure, which `sale reclaim` may offer again. None does where Redis gave
    /// more than there was, or where that is unknown.
    #[must_use]
    pub(crate) const fn has_unit(self) -> bool {
        match self {
            Self::DuplicateBuyer | Self::LimitExceeded | Self::GivenUp => true,
            Self::SoldOut | Self::UnknownSale | Self::NumberReused => false,
        }
    }

    /// Reads a stored code; an unknown one is an error for the caller to report, never a default.
    #[must_use]
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// What finally became of a request. Exactly one per request id, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// `request_outcome.kind = ORDER`.
    Ordered,
    /// `request_outcome.kind = FAILED`.
    Failed(FailReason),
}

impl Outcome {
    /// Routing key of the event that reports it to downstream systems.
    #[must_use]
    pub(crate) const fn event_key(self) -> &'static str {
        match self {
            Self::Ordered => "order.confirmed",
            Self::Failed(_) => "order.failed",
        }
    }
}

/// What stopped the transaction of one request. It was rolled back and nothing of it remains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Obstacle {
    /// The request id has an outcome with the same fingerprint: someone else was first.
    SameOutcome(Outcome),
    /// The request id, or its acceptance number, has an outcome with another fingerprint: a forgery or a bug.
    OtherOutcome,
    /// `uk_sale_user`: the buyer has an order under another request id.
    BuyerHasOrder,
    /// The cumulative limit would be passed.
    LimitPassed,
    /// The guarded stock update matched no row although the sale exists.
    StockShort,
    /// The acceptance number was closed, and its unit may be for sale again.
    NumberClosed,
    /// There is no such sale: its row is lost, or this is not its database.
    NoSuchSale,
}

/// What P4 (or a compensation) made of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The order was written now (`P4-C0`, `P5-COMP0`).
    Ordered,
    /// The outcome was decided before (`P4-C1`).
    Already(Outcome),
    /// It was refused for good and that is recorded (`P4-C2`, `P5-COMP1`).
    Refused(FailReason),
    /// The id is taken by something else: parked for a person, never decided by guessing.
    Conflict,
}

impl Verdict {
    /// The outcome that the buyer may see, if there is one.
    #[must_use]
    pub(crate) const fn outcome(self) -> Option<Outcome> {
        match self {
            Self::Ordered => Some(Outcome::Ordered),
            Self::Already(outcome) => Some(outcome),
            Self::Refused(reason) => Some(Outcome::Failed(reason)),
            Self::Conflict => None,
        }
    }

    /// What happened to the request, for the transition table. A conflict is never decided: it is spent at once.
    #[must_use]
    pub const fn event(self) -> RequestEvent {
        match self {
            Self::Ordered => RequestEvent::OrderCommitted,
            Self::Already(_) => RequestEvent::OutcomeFound,
            Self::Refused(_) => RequestEvent::RefusalCommitted,
            Self::Conflict => RequestEvent::PersistSpent,
        }
    }
}

/// What to do about an obstacle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NextStep {
    /// The outcome is known; there is nothing to write.
    Decided(Verdict),
    /// Write the FAILED outcome and the register row in a new transaction, then answer [`Verdict::Refused`].
    RecordFailure(FailReason),
    /// Nothing is decided: retries, a dead-letter queue, or the repair of the cause will settle the request.
    Park,
}

/// Decides what an obstacle means. The unique key that was hit decides (D3): a taken buyer under *another* request id is a
/// refusal of this one, never an "idempotent success" (window 60).
#[must_use]
pub const fn after_obstacle(obstacle: Obstacle) -> NextStep {
    match obstacle {
        Obstacle::SameOutcome(outcome) => NextStep::Decided(Verdict::Already(outcome)),
        Obstacle::OtherOutcome => NextStep::Decided(Verdict::Conflict),
        Obstacle::BuyerHasOrder => NextStep::RecordFailure(FailReason::DuplicateBuyer),
        Obstacle::LimitPassed => NextStep::RecordFailure(FailReason::LimitExceeded),
        Obstacle::StockShort => NextStep::RecordFailure(FailReason::SoldOut),
        Obstacle::NumberClosed => NextStep::RecordFailure(FailReason::NumberReused),
        Obstacle::NoSuchSale => NextStep::Park,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_codes_round_trip_and_an_unknown_one_is_refused() {
        for reason in FailReason::ALL {
            assert_eq!(FailReason::from_code(reason.code()), Some(reason));
        }
        assert_eq!(FailReason::from_code("sold_out"), None);
    }

    #[test]
    fn only_business_obstacles_record_a_failure() {
        assert_eq!(
            after_obstacle(Obstacle::SameOutcome(Outcome::Ordered)),
            NextStep::Decided(Verdict::Already(Outcome::Ordered))
        );
        assert_eq!(after_obstacle(Obstacle::OtherOutcome), NextStep::Decided(Verdict::Conflict));
        assert_eq!(after_obstacle(Obstacle::BuyerHasOrder), NextStep::RecordFailure(FailReason::DuplicateBuyer));
        assert_eq!(after_obstacle(Obstacle::NoSuchSale), NextStep::Park);
    }
}
