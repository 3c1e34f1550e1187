//! The life of an order after CONFIRMED: it waits for its payment, is paid, expires or is cancelled. One table of transitions;
//! the database's conditions are made from it, so code, docs and tests cannot disagree.
//!
//! Only orders of sales with a payment step have a state. Money is a thing of its own (`payment`): it is recorded first,
//! then the order is tried, and what no order could take has to go back.

use super::ids::{RequestId, UserId};
use super::states::P6Fulfil;

/// Routing key of the event of money that has to go back.
pub const REFUND_NEEDED_KEY: &str = "order.refund_needed";

/// Where an order is, as stored in `orders.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OrderState {
    /// Its buyer has to pay; its units are held for him.
    Unpaid,
    /// Paid; its units are sold.
    Paid,
    /// Its deadline passed unpaid; its units are on sale again.
    Expired,
    /// Cancelled by its buyer or an operator; its units are on sale again.
    Cancelled,
}

/// What can happen to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OrderEvent {
    /// Its exact amount was paid.
    PaymentReceived,
    /// A payment was started: the deadline moves, once.
    PaymentStarted,
    /// The enforced deadline passed.
    DeadlinePassed,
    /// Its buyer cancels it.
    CancelledByBuyer,
    /// An operator or the shop's backend cancels it.
    CancelledByOperator,
}

/// The table's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderTransition {
    /// Move to this state.
    To(OrderState),
    /// Nothing changes; the event is a repeat or came late.
    Already,
    /// The order cannot take it; the sender gets the state.
    Refused,
}

impl OrderState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 4] = [Self::Unpaid, Self::Paid, Self::Expired, Self::Cancelled];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Unpaid => "UNPAID",
            Self::Paid => "PAID",
            Self::Expired => "EXPIRED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// The state in Chinese, for people.
    #[must_use]
    pub(crate) const fn chinese(self) -> &'static str {
        match self {
            Self::Unpaid => "待付款",
            Self::Paid => "已付款",
            Self::Expired => "已过期",
            Self::Cancelled => "已取消",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// Its code among those of all phases.
    #[must_use]
    pub const fn state(self) -> P6Fulfil {
        match self {
            Self::Unpaid => P6Fulfil::Unpaid,
            Self::Paid => P6Fulfil::Paid,
            Self::Expired => P6Fulfil::Expired,
            Self::Cancelled => P6Fulfil::Cancelled,
        }
    }

    /// Routing key of its event.
    #[must_use]
    pub const fn event_key(self) -> &'static str {
        match self {
            Self::Unpaid => "order.confirmed",
            Self::Paid => "order.paid",
            Self::Expired => "order.expired",
            Self::Cancelled => "order.cancelled",
        }
    }

    /// Whether the units of such an order are its buyer's; else they are on sale again.
    #[must_use]
    pub const fn holds_units(self) -> bool {
        match self {
            Self::Unpaid | Self::Paid => true,
            Self::Expired | Self::Cancelled => false,
        }
    }

    /// What follows when `event` happens.
    #[must_use]
    pub const fn after(self, event: OrderEvent) -> OrderTransition {
        use OrderTransition::{Already, Refused, To};
        match (self, event) {
            // No check of the clock: the units are still held, so the buyer who pays gets them.
            (Self::Unpaid, OrderEvent::PaymentReceived) => To(Self::Paid),
            (Self::Unpaid, OrderEvent::PaymentStarted) => To(Self::Unpaid),
            (Self::Unpaid, OrderEvent::DeadlinePassed) => To(Self::Expired),
            (Self::Unpaid, OrderEvent::CancelledByBuyer | OrderEvent::CancelledByOperator) => To(Self::Cancelled),
            // The second payment is money too much, whichever side sent it.
            (Self::Paid, OrderEvent::PaymentReceived | OrderEvent::CancelledByBuyer) => Refused,
            (Self::Paid, OrderEvent::PaymentStarted | OrderEvent::DeadlinePassed) => Already,
            (Self::Paid, OrderEvent::CancelledByOperator) => To(Self::Cancelled),
            // A unit that was given back may be somebody else's: money never takes one anew.
            (
                Self::Expired,
                OrderEvent::PaymentReceived
                | OrderEvent::PaymentStarted
                | OrderEvent::CancelledByBuyer
                | OrderEvent::CancelledByOperator,
            )
            | (Self::Cancelled, OrderEvent::PaymentReceived | OrderEvent::PaymentStarted) => Refused,
            (Self::Expired, OrderEvent::DeadlinePassed)
            | (
                Self::Cancelled,
                OrderEvent::DeadlinePassed | OrderEvent::CancelledByBuyer | OrderEvent::CancelledByOperator,
            ) => Already,
        }
    }
}

impl OrderEvent {
    /// Every event, in the order of declaration.
    pub const ALL: [Self; 5] = [
        Self::PaymentReceived,
        Self::PaymentStarted,
        Self::DeadlinePassed,
        Self::CancelledByBuyer,
        Self::CancelledByOperator,
    ];

    /// The states that it moves to another one or, for a start, extends: the condition of its UPDATE.
    pub(crate) fn movable_states(self) -> impl Iterator<Item = &'static str> {
        let moves = move |state: &OrderState| matches!(state.after(self), OrderTransition::To(_));
        OrderState::ALL.into_iter().filter(moves).map(OrderState::code)
    }
}

/// How long buyers of a sale have to pay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, utoipa::ToSchema)]
pub struct PaymentTerms {
    /// Seconds from the order to the deadline that the buyer sees.
    pub pay_within_s: u32,
    /// Seconds from there to the deadline that is enforced.
    pub pay_grace_s: u32,
    /// Whether an order that ends unpaid no longer counts against its buyer's limit.
    pub limit_returns: bool,
}

impl PaymentTerms {
    /// As the columns of a sale have them; `None`: a sale without a payment step.
    #[must_use]
    pub fn of_columns(pay_within_s: Option<u32>, pay_grace_s: u32, limit_returns: bool) -> Option<Self> {
        pay_within_s.map(|pay_within_s| Self { pay_within_s, pay_grace_s, limit_returns })
    }
}

/// A purchase that no longer counts against its buyer's limit: buyer, request, units. In JSON an array of three.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ReturnedPurchase(pub UserId, pub RequestId, pub u32);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn codes_round_trip() {
        assert!(OrderState::ALL.iter().all(|state| OrderState::from_code(state.code()) == Some(*state)));
        assert!(OrderState::ALL.iter().all(|state| state.state().label() == state.code()));
    }

    #[test]
    fn conditions_are_made_from_the_table() {
        let from = |event: OrderEvent| event.movable_states().collect::<Vec<_>>();
        assert_eq!(from(OrderEvent::PaymentReceived), ["UNPAID"]);
        assert_eq!(from(OrderEvent::DeadlinePassed), ["UNPAID"]);
        assert_eq!(from(OrderEvent::CancelledByOperator), ["UNPAID", "PAID"]);
    }

    proptest! {
        /// Whatever happens, in whatever order: units that came back stay back, and nothing becomes unpaid again.
        #[test]
        fn units_that_came_back_are_never_taken_anew(events in prop::collection::vec(0..OrderEvent::ALL.len(), 0..40)) {
            let mut state = OrderState::Unpaid;
            for event in events {
                if let OrderTransition::To(to) = state.after(OrderEvent::ALL[event]) {
                    prop_assert!(state.holds_units(), "{state:?} to {to:?}");
                    prop_assert!(to != OrderState::Unpaid || state == OrderState::Unpaid);
                    state = to;
                }
            }
        }
    }
}
