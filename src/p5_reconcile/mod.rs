//! P5 reconcile: compares Redis, the outbox and the DLQs with the database, and repairs forward.
//!
//! Input: the ledger, read before everything else; the database, read last. Output: a balance sheet and findings; for a LEAK the
//! missing order or a recorded failure, through the same transactions as P4. Compensation gives nothing back to Redis.
//!
//! A crash at any line leaves a repair that is done or not done: each is one transaction guarded by `request_outcome`, and the next
//! round reads everything again. Two rounds at once do no harm.
//!
//! Order of the parts, each using only earlier ones: `audit_stage` and `context` (servers and limits), `pages` and `ledger_lookup` (reading), `open_units`, `dlq`,
//! `audit`, `compensation`, `rebuild`, then the phase's `worker` with `gauges`, `turns`, `audit_memories`, `settled_sales` and `unknown_sales`, and beside it `timetable` and `announcer`. Operators' commands also use
//! `request_history` and `archive`; tests of the model use `single_steps`.

mod announcer;
pub mod archive;
mod audit;
mod audit_memories;
mod audit_stage;
mod auto_close;
mod compensation;
mod context;
pub mod dlq;
mod gauges;
mod ledger_lookup;
mod line_keeper;
mod open_units;
mod pages;
mod rebuild;
mod request_history;
pub mod rows;
mod settled_sales;
#[cfg(feature = "faults")]
pub mod single_steps;
mod timetable;
mod turns;
mod unknown_sales;
mod worker;

pub use announcer::Announcer;
pub use audit::{AuditOptions, FindingKind, SaleAudit, Window, audit_sale, unknown_sales};
pub(crate) use audit::{Suspect, gap_suspects};
pub use audit_stage::AuditStage;
pub use compensation::{compensate, finish_transfers, mark_outcomes, trim_all};
pub use context::ReconcileContext;
pub(crate) use context::{ReconcileError, ReconcileHandles, ReconcileRows};
pub use line_keeper::LineKeeper;
pub(crate) use request_history::RequestHistory;
pub use request_history::request_history;
pub use timetable::Timekeeper;
pub use worker::Reconcile;
