//! P1 entry & cache: who is asking, for which sale, and whether the purchase may be tried now.
//!
//! Input: HTTP requests. Output: purchases handed to P2, and answers to buyers. P1 is the only phase that imports
//! others: P2, and P6 for a buyer's own orders. Everything here is a cache or a check: a crash leaves nothing behind but unanswered connections.

pub mod access_tokens;
pub mod auto_warm;
pub(crate) mod block_list;
pub mod catalog;
pub(crate) mod challenge;
pub(crate) mod entitlement;
mod forgery_budget;
pub mod http;
mod kept_for;
pub(crate) mod key_set;
pub(crate) mod lines;
pub mod my_orders;
pub mod overload;
pub mod purchase_tokens;
pub mod purchasing;
mod queued_orders;
pub mod rate_limits;
mod reading_pace;
mod refusals;
pub mod request_ids;
pub mod sale_id_filter;
pub mod sale_list;
mod signed;
pub mod status;
mod usual_tokens;
pub mod waiting_room;
