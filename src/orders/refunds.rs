//! Money that has to go back, as callers ask for it and get it, page by page.
//!
//! Input: which payments. Output: a page of them. Reads only.

use crate::domain::ids::SaleId;
use crate::http::bad_form::{BadForm, bad};
use crate::http::cursors::{last_of_full, place_of, time};
use crate::orders::document::PaymentDocument;
use crate::orders::rows::OrderRows;
use crate::orders::rows::{Payment, REFUNDS_PAGE_MAX, RefundPlace, RefundsFilter};
use crate::store::mysql::DbError;
use serde::Serialize;

/// Payments of a page when nothing else is asked for.
pub(crate) const REFUNDS_PAGE: u16 = REFUNDS_PAGE_MAX;

/// Which payments are asked for, as the caller sends it.
#[derive(Debug, Clone, Default)]
pub(crate) struct RefundsForm {
    pub(crate) sale: Option<SaleId>,
    /// `next` of the page before.
    pub(crate) cursor: Option<String>,
    pub(crate) limit: u16,
}

impl RefundsForm {
    /// The question to the database.
    pub(crate) fn filter(self) -> Result<RefundsFilter, BadForm> {
        if self.limit > REFUNDS_PAGE_MAX {
            return bad("limit", "0 to 1000", "0 至 1000");
        }
        let after = self.cursor.as_deref().map(refund_place).transpose()?;
        Ok(RefundsFilter { sale: self.sale, after, limit: self.limit })
    }
}

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

/// Where a page of refunds ended.
fn refund_place(cursor: &str) -> Result<RefundPlace, BadForm> {
    place_of(cursor, |cursor| {
        let (state_at, id) = cursor.split_once('-')?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let id = id.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
        Some(RefundPlace { state_at_ms: time(state_at)?, payment_id: String::from_utf8(id).ok()? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ids::RequestId;
    use crate::domain::payment::PaymentState;

    #[test]
    fn a_form_that_cannot_be_answered_names_its_field() {
        let field = |form: RefundsForm| form.filter().err().map(|bad| bad.field);
        assert_eq!(field(RefundsForm::default()), None, "only the count");
        assert_eq!(field(RefundsForm { limit: 1001, ..RefundsForm::default() }), Some("limit"));
        assert_eq!(field(RefundsForm { cursor: Some("x".into()), ..RefundsForm::default() }), Some("cursor"));
    }

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
