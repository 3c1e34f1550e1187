//! A purchase request as P1 hands it to P2. After the admission script accepted it, it is an order message (`message`).

use super::ids::{RequestId, SaleId, UserId};
use super::policy::Quantity;

/// A purchase as the buyer wants it. The request id is made (or taken from the purchase token) before Redis, never later (A2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purchase {
    /// Identity of the request; a repeat with the same id is the same purchase.
    pub request_id: RequestId,
    /// The sale to buy from.
    pub sale_id: SaleId,
    /// The buyer who wants the units.
    pub user_id: UserId,
    /// Number of units, at least 1.
    pub quantity: Quantity,
}
