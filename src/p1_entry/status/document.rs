//! The answer to a status question, and where it can be read. Values only.

use crate::domain::ids::{RequestId, SaleId};
use crate::domain::ledger::LedgerState;
use crate::domain::states::{P2Reserve, P4Persist};
use crate::orders::document::OrderDocument;
use serde::Serialize;

/// The answer to a status question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct OrderStatus {
    /// The request, a decimal string.
    #[schema(value_type = String, example = "254385310867492864")]
    pub request_id: RequestId,
    /// QUEUED, CONFIRMED or FAILED.
    #[schema(example = "CONFIRMED")]
    pub status: &'static str,
    /// The state code.
    #[schema(example = "P4-C0")]
    pub code: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Units of the purchase.
    pub quantity: u32,
    /// The order of a CONFIRMED request in a sale with a payment step; absent elsewhere, and while it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<StatusOrder>,
}

impl OrderStatus {
    pub(super) fn new(request_id: RequestId, quantity: u32, state: LedgerState) -> Self {
        let (status, code, reason) = match state {
            LedgerState::Queued => ("QUEUED", P2Reserve::Reserved.code(), None),
            LedgerState::Confirmed => ("CONFIRMED", P4Persist::DbOk.code(), None),
            LedgerState::Failed(reason) => ("FAILED", P4Persist::BizErrorAck.code(), Some(reason.code())),
        };
        Self { request_id, status, code, reason, quantity, order: None }
    }

    /// Whether there is an order.
    #[must_use]
    pub(crate) fn is_confirmed(&self) -> bool {
        self.status == "CONFIRMED"
    }

    /// Whether it is CONFIRMED or FAILED.
    #[must_use]
    pub(crate) fn is_final(&self) -> bool {
        self.status != "QUEUED"
    }
}

/// Where the status of a request can be read.
#[must_use]
pub(crate) fn status_url(sale: &SaleId, request_id: RequestId) -> String {
    format!("/v1/sales/{sale}/orders/{request_id}")
}

/// The order that became of a CONFIRMED request, in a sale with a payment step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub(crate) struct StatusOrder {
    /// UNPAID, PAID, EXPIRED or CANCELLED.
    #[schema(example = "UNPAID")]
    pub(crate) state: Option<&'static str>,
    /// What it costs, in the smallest unit of the currency.
    pub(crate) amount: i64,
    /// ISO 4217 code.
    #[schema(example = "CNY")]
    pub(crate) currency: String,
    /// The deadline of its payment, RFC 3339.
    pub(crate) pay_by: Option<String>,
}

impl StatusOrder {
    /// What a status shows of an order.
    pub(crate) fn of(order: OrderDocument) -> Self {
        let OrderDocument { state, amount, currency, pay_by, .. } = order;
        Self { state, amount, currency, pay_by }
    }
}
