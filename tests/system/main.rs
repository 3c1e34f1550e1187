//! The noisy integration tests: they kill, freeze and fill servers, start clusters, browsers and real processes, bring crowds, or
//! count on something happening within seconds. What keeps the processors busy runs one at a time, what mostly waits beside
//! it. The quiet ones are in `tests/it`.
//!
//! No mocks: real Redis, RabbitMQ and MariaDB, started by [`support::world`] and by the tests themselves, and killed by the
//! kernel when this process ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod accounts;
mod alerts;
mod bench;
mod browser;
mod clusters;
mod crowds;
mod dev_servers;
mod doctor;
mod doctor_bad_setup;
mod floods;
mod greedy_accounts;
mod hostile_clients;
mod idle_sales;
mod issuer;
mod kills;
mod load_generator;
mod log_output;
mod open_files;
mod processes;
mod repeated_questions;
mod sale_changes;
mod server_defaults;
mod settings;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod timed;
mod tls;
mod traces;
mod versions;
