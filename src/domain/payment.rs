//! Payments: money is recorded first, then the order is tried; what no order can take has to go back.

use super::ids::RequestId;
use super::order_life::OrderState;
use xxhash_rust::xxh64::xxh64;

/// Highest amount, in the currency's smallest unit: 2^53 - 1, which every reader of JSON takes.
pub(crate) const AMOUNT_MAX: i64 = 9_007_199_254_740_991;
/// Longest id of a payment, bytes.
pub(crate) const PAYMENT_ID_BYTES_MAX: usize = 128;
/// What an id gets that distinguishes its payment from another one of the same id: `~` and 16 hexadecimal digits.
const MARK_BYTES: usize = 17;

/// Where a payment is, as stored in `payments.state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PaymentState {
    /// It paid its order.
    Applied,
    /// No order could take it: the money has to go back.
    RefundNeeded,
    /// The money went back.
    Refunded,
}

impl PaymentState {
    /// Every state, in the order of a life.
    pub const ALL: [Self; 3] = [Self::Applied, Self::RefundNeeded, Self::Refunded];

    /// The stored and shown code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Applied => "APPLIED",
            Self::RefundNeeded => "REFUND_NEEDED",
            Self::Refunded => "REFUNDED",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }
}

/// Why money has to go back. The code is stable: it is stored, shown and used in metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RefundReason {
    /// No server knows the request.
    NoOrder,
    /// The request failed: it never becomes an order.
    RequestFailed,
    /// The sale of the order has no payment step.
    NoPaymentStep,
    /// Another payment was first.
    AlreadyPaid,
    /// It came after the order had expired.
    Expired,
    /// It came after the order was cancelled, or the order was cancelled after it.
    Cancelled,
    /// It is of another amount than the order.
    OtherAmount,
    /// It is in another currency than the order.
    OtherCurrency,
    /// Another payment has its id: for another order, or of another amount or currency.
    PaymentIdTaken,
}

impl RefundReason {
    /// Every reason, in the order of declaration.
    pub const ALL: [Self; 9] = [
        Self::NoOrder,
        Self::RequestFailed,
        Self::NoPaymentStep,
        Self::AlreadyPaid,
        Self::Expired,
        Self::Cancelled,
        Self::OtherAmount,
        Self::OtherCurrency,
        Self::PaymentIdTaken,
    ];

    /// The stable code.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::NoOrder => "NO_ORDER",
            Self::RequestFailed => "REQUEST_FAILED",
            Self::NoPaymentStep => "NO_PAYMENT_STEP",
            Self::AlreadyPaid => "ALREADY_PAID",
            Self::Expired => "EXPIRED",
            Self::Cancelled => "CANCELLED",
            Self::OtherAmount => "OTHER_AMOUNT",
            Self::OtherCurrency => "OTHER_CURRENCY",
            Self::PaymentIdTaken => "PAYMENT_ID_TAKEN",
        }
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

/// What is asked of an order, or reported of a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// In the smallest unit of the currency.
    pub amount_cents: i64,
    /// ISO 4217 code.
    pub currency: String,
}

/// Whether an order in `state` that costs `asked` can take a payment of `reported`: `None` when it can.
#[must_use]
pub fn refund_reason(state: Option<OrderState>, asked: &Price, reported: &Price) -> Option<RefundReason> {
    let Some(state) = state else { return Some(RefundReason::NoPaymentStep) };
    match state {
        OrderState::Paid => Some(RefundReason::AlreadyPaid),
        OrderState::Expired => Some(RefundReason::Expired),
        OrderState::Cancelled => Some(RefundReason::Cancelled),
        OrderState::Unpaid if asked.currency != reported.currency => Some(RefundReason::OtherCurrency),
        OrderState::Unpaid if asked.amount_cents != reported.amount_cents => Some(RefundReason::OtherAmount),
        OrderState::Unpaid => None,
    }
}

/// The id under which money is recorded when another payment has the id that was reported: that one, and a mark made of what this money is.
/// So a repeat finds it, and a person sees what the provider calls it. An id that would get too long loses its end.
#[must_use]
pub(crate) fn id_beside(reported: &str, request_id: RequestId, price: &Price) -> String {
    let Price { amount_cents, currency } = price;
    let mark = xxh64(format!("{reported} {request_id} {amount_cents} {currency}").as_bytes(), 0);
    let kept: String = reported.chars().take(PAYMENT_ID_BYTES_MAX - MARK_BYTES).collect();
    format!("{kept}~{mark:016x}")
}

#[cfg(test)]
mod tests {
    use super::super::order_life::{OrderEvent, OrderTransition};
    use super::*;

    #[test]
    fn codes_round_trip() {
        assert!(PaymentState::ALL.iter().all(|state| PaymentState::from_code(state.code()) == Some(*state)));
        assert!(RefundReason::ALL.iter().all(|reason| RefundReason::from_code(reason.code()) == Some(*reason)));
    }

    #[test]
    fn the_same_money_always_gets_the_same_id_beside_another_and_other_money_another_one() {
        let of = |reported: &str, request_id, amount_cents, currency: &str| {
            let price = Price { amount_cents, currency: currency.to_owned() };
            id_beside(reported, RequestId::new(request_id).unwrap(), &price)
        };
        let first = of("pi_1", 7, 500, "CNY");
        assert!(first.starts_with("pi_1~") && first.len() == 4 + MARK_BYTES, "{first}");
        assert_eq!(first, of("pi_1", 7, 500, "CNY"));
        let long = "x".repeat(PAYMENT_ID_BYTES_MAX);
        let others = [
            of("pi_1", 8, 500, "CNY"),
            of("pi_1", 7, 501, "CNY"),
            of("pi_1", 7, 500, "USD"),
            of("pi_2", 7, 500, "CNY"),
        ];
        assert!(!others.contains(&first), "{others:?}");
        assert_eq!(of(&long, 7, 500, "CNY").len(), PAYMENT_ID_BYTES_MAX);
        assert_ne!(of(&long, 7, 500, "CNY"), of(&format!("{}y", &long[1..]), 7, 500, "CNY"), "its end counts");
    }

    #[test]
    fn money_is_applied_to_an_unpaid_order_of_its_amount_only() {
        let price = |amount_cents, currency: &str| Price { amount_cents, currency: currency.to_owned() };
        let of = |state, reported: &Price| refund_reason(state, &price(500, "CNY"), reported);
        assert_eq!(of(Some(OrderState::Unpaid), &price(500, "CNY")), None);
        assert_eq!(of(Some(OrderState::Unpaid), &price(499, "CNY")), Some(RefundReason::OtherAmount));
        assert_eq!(of(Some(OrderState::Unpaid), &price(500, "USD")), Some(RefundReason::OtherCurrency));
        assert_eq!(of(Some(OrderState::Paid), &price(500, "CNY")), Some(RefundReason::AlreadyPaid));
        assert_eq!(of(None, &price(500, "CNY")), Some(RefundReason::NoPaymentStep));
        // The table and the reasons say the same of every state.
        for state in OrderState::ALL {
            let moves = matches!(state.after(OrderEvent::PaymentReceived), OrderTransition::To(_));
            assert_eq!(moves, of(Some(state), &price(500, "CNY")).is_none(), "{state:?}");
        }
    }
}
