//! The dead-letter queues (E5): everything that is parked, and what an operator does about it.
//!
//! Parked requests are in three places: the relay DLQ (a stream in Redis), the MQ DLQ (a queue in RabbitMQ), and the open failed
//! requests in the database, to which P5 copies relay-DLQ entries before it removes them. None of them decides anything: the
//! database's `request_outcome` does, so every action reads it first.
//!
//! Input: the parked entries. Output: an outcome in the database, marked in the ledger, a closed failed request, a row in
//! `operator_acts`, and then, last of all, an empty place. A crash before the end leaves the entry where it was; the next action
//! finds the outcome decided and only removes the entry.
//!
//! P5's own rounds use `relay_copy`, `mq_cleanup` and `mq_scan`; operators use the others.

mod action;
mod decided_events;
mod entry;
mod find;
pub(crate) mod forms;
mod mq_cleanup;
mod mq_scan;
mod record;
mod relay_copy;
mod service;

pub use action::{DlqAction, DlqActionResult, DlqSelection};
pub(crate) use action::{DlqReport, DlqReportLine};

pub(crate) use entry::{DlqEntry, DlqError, DlqListing, DlqSource, code_of};
pub(crate) use find::list;
pub use mq_cleanup::{MqDlqCleanup, clean_mq_dlq};
pub use mq_scan::MqDlqContents;
pub(super) use mq_scan::MqDlqScan;
pub(super) use relay_copy::copy_relay_dlq;
pub use service::DlqService;
