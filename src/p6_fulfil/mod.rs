//! P6 fulfil: what becomes of an order after it was confirmed. Its buyer pays, or cancels, or the deadline passes and its units
//! are on sale again.
//!
//! Input: payments and cancellations from the shop's backend, from buyers and operators; the clock of the database. Output: one
//! conditional step of the order in the database (`store/mysql/order_life`), then its units in Redis as a grant like any other.
//!
//! What became of orders is told to the webhooks by [`WebhookSender`].
//!
//! A crash between the two leaves an open grant, which the next sweep, P5 or the api gives. Redis never decides here: it is told.

mod acceptance;
mod context;
mod cursors;
mod deliveries;
mod document;
mod expiry;
mod form;
mod halves;
mod orders;
mod overdue;
mod refunds;
mod webhooks;

pub(crate) use acceptance::NoOrderYet;
pub(crate) use context::FulfilContext;
pub(crate) use deliveries::{
    DeliveriesForm, DeliveriesPage, DeliveryDocument, ReplayForm, ReplayedDeliveries, WebhookDocument,
    webhooks_overview,
};
pub(crate) use document::{OrderDocument, OrdersPage, PaymentDocument, shown_time};
pub use expiry::Expiry;
pub(crate) use form::{BadForm, OrdersForm, PaymentForm, checked_payment_id};
pub(crate) use orders::{
    CancelError, OrderWork, PaymentError, cancel_by_buyer, cancel_by_operator, payment_state, receive_payment,
    refund_done, start_payment,
};
pub(crate) use refunds::{REFUNDS_PAGE, RefundsForm, RefundsPage};
pub use webhooks::{WebhookSender, WebhookSetupError};
