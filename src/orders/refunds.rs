//! Money that has to go back, as callers ask for it and get it, page by page.
//!
//! Input: which payments. Output: a page of them. Reads only.

use crate::domain::ids::SaleId;
use crate::http::bad_form::{BadForm, bad};
use crate::http::cursors::{after_payment, last_of_full, refund_place};
use crate::orders::document::PaymentDocument;
use crate::orders::rows::{self as order_life, REFUNDS_PAGE_MAX, RefundsFilter};
use crate::store::mysql::{Db, DbError};
use serde::Serialize;

/// Payments of a page when nothing else is asked for.
pub(crate) const REFUNDS_PAGE: u16 = REFUNDS_PAGE_MAX;

/// Which payments are asked for, as it is told.
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
    pub(crate) async fn read(db: &Db, wanted: &RefundsFilter) -> Result<Self, DbError> {
        let found = order_life::refunds_needed(db, wanted).await?;
        let next = last_of_full(&found.payments, wanted.limit).map(after_payment);
        Ok(Self { payments: found.payments.into_iter().map(PaymentDocument::of).collect(), count: found.count, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_that_cannot_be_answered_names_its_field() {
        let field = |form: RefundsForm| form.filter().err().map(|bad| bad.field);
        assert_eq!(field(RefundsForm::default()), None, "only the count");
        assert_eq!(field(RefundsForm { limit: 1001, ..RefundsForm::default() }), Some("limit"));
        assert_eq!(field(RefundsForm { cursor: Some("x".into()), ..RefundsForm::default() }), Some("cursor"));
    }
}
