//! A purchase request as P1 hands it to P2. After the admission script accepted it, it is an order message (`message`).

use super::buyer::buyer_text;
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
    /// Who may have so much and no more: the person where the sale limits by person, else the account. All about one of them is on one
    /// shard, and what is counted for a limit is counted under this id.
    #[must_use]
    pub fn limit_key(&self) -> &UserId {
        self.person.as_ref().unwrap_or(&self.user_id)
    }

    /// The account and the person as one text.
    pub(crate) fn buyer_text(&self) -> Cow<'_, str> {
        buyer_text(&self.user_id, self.person.as_ref())
    }
}
