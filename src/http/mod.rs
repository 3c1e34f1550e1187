//! What the two HTTP servers (P1's public one, the operators' one) share, and the client for calls to other machines. It knows no
//! use case and no server behind them.
//!
//! Input: requests and results of handlers. Output: problem documents, request ids, a server that ends gracefully. A crash
//! leaves unanswered connections.

mod answers;
pub(crate) mod bad_form;
mod call_under_way;
pub(crate) mod client;
mod client_deadline;
mod connection;
pub(crate) mod cursors;
pub(crate) mod extract;
mod framing;
pub(crate) mod language;
pub(crate) mod new_challenge;
mod open_files;
pub(crate) mod openapi;
pub mod problem;
mod problem_kinds;
pub(crate) mod public_port;
pub(crate) mod request_id;
mod server;
mod serving;
pub(crate) mod times;

pub(crate) use answers::HttpPort;
pub(crate) use open_files::connections_max;
pub use public_port::BoundPort;
pub(crate) use server::ExtraRoutes;
pub use server::{end_gracefully, worker_count};
pub(crate) use serving::{PortSettings, serve_port};
