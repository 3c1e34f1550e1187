//! An order as the APIs, the command line and the pages show it. Times are RFC 3339, amounts whole numbers of the currency's
//! smallest unit.

use crate::domain::ids::{RequestId, SaleId, UserId};
use crate::http::times::shown_time;
use crate::orders::rows::{FoundOrders, ListedOrder, Payment};
use serde::Serialize;

/// One order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Order)]
pub(crate) struct OrderDocument {
    /// The request that became this order, a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    pub(crate) request_id: RequestId,
    /// The sale.
    #[schema(value_type = String, example = "demo")]
    pub(crate) sale_id: SaleId,
    /// What the sale calls itself.
    pub(crate) title: String,
    /// The buyer; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) user_id: Option<UserId>,
    /// The person for whom it counts, where the sale limits by person; only for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub(crate) person: Option<UserId>,
    /// Units.
    pub(crate) quantity: u32,
    /// UNPAID, PAID, EXPIRED or CANCELLED; null where the sale has no payment step.
    #[schema(example = "UNPAID")]
    pub(crate) state: Option<&'static str>,
    /// Its state code, P6-F0 to P6-F3.
    #[schema(example = "P6-F0")]
    pub(crate) code: Option<&'static str>,
    /// What it costs, in the smallest unit of the currency.
    #[schema(example = 199_900)]
    pub(crate) amount: i64,
    /// ISO 4217 code.
    #[schema(example = "CNY")]
    pub(crate) currency: String,
    /// When the purchase was accepted, RFC 3339.
    pub(crate) accepted_at: String,
    /// When it was written, RFC 3339.
    pub(crate) created_at: String,
    /// When it got its state.
    pub(crate) state_at: Option<String>,
    /// The deadline of its payment.
    pub(crate) pay_by: Option<String>,
}

/// A page of orders.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct OrdersPage {
    /// Newest first: those of a sale by acceptance, others, and those of a time, by request id. With `from`, `to` or `state`, and for a
    /// buyer with more than 10,000 orders, there may be fewer than `limit`, or none, although there is a next page.
    pub(crate) orders: Vec<OrderDocument>,
    /// `cursor` of the next page; null on the last one.
    #[schema(value_type = Option<String>, example = "254385310867492864")]
    pub(crate) next: Option<RequestId>,
}

impl OrdersPage {
    /// What was found, for operators.
    pub(crate) fn with_buyers(found: FoundOrders) -> Self {
        let FoundOrders { orders, next } = found;
        Self { orders: orders.into_iter().map(OrderDocument::with_buyer).collect(), next }
    }
}

/// One payment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(as = Payment)]
pub(crate) struct PaymentDocument {
    /// The provider's id of it.
    #[schema(example = "pi_3")]
    pub(crate) payment_id: String,
    /// The order that it is for, as reported, a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    pub(crate) request_id: RequestId,
    /// In the smallest unit of the currency.
    #[schema(example = 199_900)]
    pub(crate) amount: i64,
    /// ISO 4217 code.
    #[schema(example = "CNY")]
    pub(crate) currency: String,
    /// APPLIED, REFUND_NEEDED or REFUNDED.
    #[schema(example = "APPLIED")]
    pub(crate) state: &'static str,
    /// Why the money has to go back, or went; null while it is APPLIED.
    #[schema(example = "ALREADY_PAID")]
    pub(crate) reason: Option<String>,
    /// When it was reported, RFC 3339.
    pub(crate) told_at: String,
}

impl PaymentDocument {
    pub(crate) fn of(payment: Payment) -> Self {
        Self {
            payment_id: payment.payment_id,
            request_id: payment.request_id,
            amount: payment.amount_cents,
            currency: payment.currency,
            state: payment.state.code(),
            reason: payment.reason,
            told_at: shown_time(payment.created_at_ms),
        }
    }
}

impl OrderDocument {
    /// For its buyer.
    pub(crate) fn of(order: ListedOrder) -> Self {
        let ListedOrder { row, terms } = order;
        Self {
            request_id: row.request_id,
            sale_id: row.sale_id,
            title: terms.title,
            user_id: None,
            person: None,
            quantity: row.quantity,
            state: row.state.map(|state| state.code()),
            code: row.state.map(|state| state.state().code()),
            amount: row.amount_cents,
            currency: terms.currency,
            accepted_at: shown_time(row.accepted_at_ms),
            created_at: shown_time(row.created_at_ms),
            state_at: row.state_at_ms.map(shown_time),
            pay_by: row.pay_by_ms.map(shown_time),
        }
    }

    /// For operators: with the buyer.
    pub(crate) fn with_buyer(order: ListedOrder) -> Self {
        let (user_id, person) = (Some(order.row.user_id.clone()), order.row.person.clone());
        Self { user_id, person, ..Self::of(order) }
    }
}
