//! What the handlers of the public API share. One a process.

use super::waiters::Waiters;
use crate::config;
use crate::p1_entry::access_tokens::Authenticator;
use crate::p1_entry::catalog::Catalog;
use crate::p1_entry::entitlement::Entitlements;
use crate::p1_entry::lines::Lines;
use crate::p1_entry::my_orders::MyOrders;
use crate::p1_entry::overload::Overload;
use crate::p1_entry::purchasing::{PurchaseTokenIssuer, Purchasing};
use crate::p1_entry::sale_list::SaleList;
use crate::p1_entry::status::Statuses;
use crate::p1_entry::waiting_room::RoomEntrance;
use std::sync::Arc;
use std::time::Duration;

/// The use cases of the entry, and the bounds of a request.
pub struct PublicApi {
    /// Checks access tokens.
    pub auth: Authenticator,
    /// Judges what buyers show to sales that need something.
    pub(crate) entitlements: Arc<Entitlements>,
    pub(crate) purchasing: Purchasing,
    /// Issues purchase tokens.
    pub token_issuer: PurchaseTokenIssuer,
    /// Places in waiting rooms.
    pub rooms: RoomEntrance,
    /// Lines of sales.
    pub(crate) lines: Lines,
    /// Answers what became of a request.
    pub statuses: Statuses,
    /// Buyers' own orders.
    pub my_orders: MyOrders,
    /// The list of sales.
    pub sales: SaleList,
    /// Single sales with their stock.
    pub catalog: Catalog,
    /// Bounds the purchases under way.
    pub overload: Overload,
    /// Bounds the questions that wait for an outcome.
    pub waiters: Waiters,
    /// Bounds of a request.
    pub bounds: RequestBounds,
}

/// Bounds of one request.
pub struct RequestBounds {
    /// Longest body, bytes.
    pub(super) body_bytes_max: usize,
    /// Time for a body to arrive.
    pub(super) body_timeout: Duration,
    /// Most units in one request.
    pub(super) quantity_max: u32,
}

impl RequestBounds {
    /// The bounds of the settings.
    #[must_use]
    pub(crate) const fn new(settings: &config::Settings) -> Self {
        Self {
            body_bytes_max: settings.http.body_bytes_max,
            body_timeout: Duration::from_millis(settings.http.body_timeout_ms),
            quantity_max: settings.p1_entry.quantity_max,
        }
    }
}
