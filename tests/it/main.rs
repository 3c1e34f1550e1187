//! The integration tests, by the field's groups, in one binary on one set of private servers.
//!
//! No mocks: real Redis, RabbitMQ and MariaDB, started by [`world`] and killed by the kernel when this process ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod answer;
mod contract;
mod dev_servers;
mod group_a_entry;
mod group_b_relay;
mod group_c_persist;
mod group_d_reconcile;
mod hands;
mod processes;
mod procs;
mod store_mysql;
mod store_rabbit;
mod world;
