//! The operators' HTTP server: health, metrics, the console, and the admin API behind a bearer token. Never on the public port.
//!
//! However many screens are open, each server is read at most once a second for all of them ([`cached`]). `routes` has the routes;
//! their handlers are in the files below it, one family each, and share `state`, `json_api` and `problems`.

mod act_body;
mod acts;
mod audits;
mod blocks;
mod cached;
mod calls;
mod denied;
mod dlq;
mod drops;
mod failed_requests;
mod flows;
mod forget;
mod json_api;
mod lines;
mod minutes;
mod openapi;
mod order_export;
mod order_steps;
mod orders;
mod passes;
mod pipeline;
mod problems;
mod process;
mod readiness;
mod refunds;
mod routes;
mod sale_changes;
mod sale_creation;
mod sale_write;
mod sales;
mod server;
mod server_probes;
mod sign_in;
mod state;
mod tallies;
mod units;
mod webhooks;

pub use openapi::document;
pub use readiness::Readiness;
pub use server::serve;
pub use server_probes::ServerProbe;
pub use state::Admin;
