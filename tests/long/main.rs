//! What takes minutes by nature: `make test-long`. `make test` builds nothing of it and has a short case of each.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod audits;
mod bench;
mod clusters;
mod generated_clients;
mod lines;
mod many_orders;
mod measured;
mod orders_at_size;
mod pass_snippets;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of the harness")]
#[path = "../support/mod.rs"]
mod support;
