//! The public HTTP server; the contract is `openapi.rs`. Handlers translate between HTTP and the use cases of the entry; they
//! decide nothing.
//!
//! Input: HTTP requests. Output: answers. A crash leaves unanswered connections.

mod body;
mod cors;
mod draws;
mod drops;
mod entries;
mod events;
mod front;
mod headers;
mod my_orders;
mod openapi;
mod orders;
mod places;
mod queries;
mod read_purchase;
mod sales;
mod server;
mod state;
mod tokens;
mod waiters;

pub(crate) use headers::Caller;
pub use openapi::document;
pub use server::serve;
pub(crate) use state::{PublicApi, RequestBounds};
pub(crate) use waiters::Waiters;
