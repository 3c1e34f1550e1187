//! P6 fulfil: what becomes of an order after it was confirmed. Its buyer pays, or cancels, or the deadline passes and its units
//! are on sale again.
//!
//! Input: payments and cancellations from the shop's backend, from buyers and operators; the clock of the database. Output: one
//! conditional step of the order in the database (`orders/rows`), then its units in Redis as a grant like any other.
//!
//! Webhooks get what became of orders from the events that are written with each step (`events/webhooks`).
//!
//! A crash between the two leaves an open grant, which the next sweep, P5 or the api gives. Redis never decides here: it follows.

mod acceptance;
mod context;
mod expiry;
mod halves;
mod orders;
mod overdue;

pub(crate) use acceptance::NoOrderYet;
pub(crate) use context::FulfilContext;
pub use expiry::Expiry;
pub(crate) use orders::{
    CancelError, OrderWork, PaymentError, cancel_by_buyer, cancel_by_operator, payment_state, receive_payment,
    refund_done, start_payment,
};
