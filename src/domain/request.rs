//! A purchase request as P1 hands it to P2. After the admission script accepted it, it is an order message (`message`).

use super::buyer::{buyer_text, limit_key};
use super::ids::{RequestId, SaleId, UserId};
use super::policy::Quantity;
use std::borrow::Cow;

/// A purchase as the buyer wants it. The request id is made (or taken from the purchase token) before Redis, never later (A2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// Identity of the request; a repeat with the same id is the same purchase.
    pub request_id: RequestId,
    /// The sale to buy from.
    pub sale_id: SaleId,
    /// The buyer who wants the units: the account.
    pub user_id: UserId,
    /// The person behind the account, spelled as a user id is; only in a sale that limits by person.
    pub person: Option<UserId>,
    /// Number of units, at least 1.
    pub quantity: Quantity,
}

impl Purchase {
    /// Under which id its units count for a limit: the person's where the sale limits by person, else the account's.
    #[must_use]
    pub fn limit_key(&self) -> &UserId {
        limit_key(&self.user_id, self.person.as_ref())
    }

    /// The account and the person as one text.
    pub(crate) fn buyer_text(&self) -> Cow<'_, str> {
        buyer_text(&self.user_id, self.person.as_ref())
    }
}
