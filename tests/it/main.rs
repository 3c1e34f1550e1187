//! The quiet integration tests, by phase, in one binary on one set of private servers: they run side by side, also on a busy
//! machine. What kills servers, counts on time or brings a crowd is in `tests/system`.
//!
//! No mocks: real Redis, RabbitMQ and MariaDB, started by [`support::world`] and killed by the kernel when this process ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod entry;
mod fulfil;
mod ops;
mod persist;
mod reconcile;
mod relay;
mod reserve;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
