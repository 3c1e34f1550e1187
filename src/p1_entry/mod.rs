//! P1 entry & cache: who asks, for what, may they try right now.
//!
//! Input: HTTP requests. Output: purchases handed to P2, and answers to buyers. P1 is the only phase that imports another
//! (P2). Everything here is a cache or a check: a crash leaves nothing behind but unanswered connections.

pub mod auth;
pub mod auto_warm;
pub mod catalog;
pub mod http;
pub mod known;
pub mod limits;
pub mod orders;
pub mod overload;
mod refusal;
pub mod request_ids;
pub mod room;
mod signed;
mod spans;
pub mod status;
pub mod tokens;
