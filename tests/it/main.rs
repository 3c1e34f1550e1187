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
mod beside;
mod contract;
mod crowd_http;
mod crowd_run;
mod dev_servers;
mod group_a_access;
mod group_a_bad_input;
mod group_a_crowd;
mod group_a_damage;
mod group_a_entry;
mod group_a_events;
mod group_a_fence;
mod group_a_floods;
mod group_a_ids;
mod group_a_keys_lost;
mod group_a_model;
mod group_a_replay;
mod group_a_status;
mod group_a_tokens;
mod group_a_unknown;
mod group_a_window;
mod group_b_relay;
mod group_c_persist;
mod group_d_reconcile;
mod group_d_trim;
mod hands;
mod model;
mod processes;
mod procs;
mod redis_loss;
mod resp;
mod store_mysql;
mod store_rabbit;
mod wire;
mod world;
