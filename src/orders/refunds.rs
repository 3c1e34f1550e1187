//! Money that has to go back, as callers get it, page by page.
//!
//! Input: which payments (`forms`). Output: a page of them. Reads only.

use crate::http::cursors::last_of_full;
use crate::orders::document::PaymentDocument;
use crate::orders::rows::OrderRows;
use crate::orders::rows::{Payment, RefundsFilter};
use crate::store::mysql::DbError;
use serde::Serialize;

/// A page of payments whose money has to go back.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(crate) struct RefundsPage {
    /// Oldest first.
    pub(crate) payments: Vec<PaymentDocument>,
    /// How many there are on all pages, counted up to 10,000.
    pub(crate) count: i64,
    /// `cursor` of the next page; null on the last one.
    pub(crate) next: Option<String>,
}

impl RefundsPage {
    /// The answer to `wanted`.
    pub(crate) async fn read(orders: &OrderRows, wanted: &RefundsFilter) -> Result<Self, DbError> {
        let found = orders.refunds_needed(wanted).await?;
        let next = last_of_full(&found.payments, wanted.limit).map(after_payment);
        Ok(Self { payments: found.payments.into_iter().map(PaymentDocument::of).collect(), count: found.count, next })
    }
}

/// The page of refunds ended with this payment.
fn after_payment(payment: &Payment) -> String {
    let id: String = payment.payment_id.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{id}", payment.state_at_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::domain::payment::PaymentState;
    use crate::orders::forms::refund_place;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let payment = Payment {
            payment_id: "pi_3&#%-'".to_owned(),
            request_id: RequestId::new(7).unwrap(),
            amount_cents: 1,
            currency: "CNY".to_owned(),
            state: PaymentState::RefundNeeded,
            reason: None,
            created_at_ms: 1,
            state_at_ms: 1_763_720_000_123,
        };
        let cursor = after_payment(&payment);
        assert!(cursor.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{cursor}");
        let place = refund_place(&cursor).unwrap();
        assert_eq!((place.state_at_ms, place.payment_id), (payment.state_at_ms, payment.payment_id));
    }

    #[test]
    fn what_is_no_cursor_is_refused_by_name() {
        for text in
            ["", "7", "x-70", "-1-70", "7-7g", "7-é", "7-ff", "253402300800000-70", &format!("7-{}", "70".repeat(150))]
        {
            assert_eq!(refund_place(text).unwrap_err().field, "cursor", "{text}");
        }
    }
}
