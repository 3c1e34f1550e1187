//! The chaos harness: clients that behave as real ones do under faults, and a checker that trusts nobody.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod checker;
mod clients;
mod dump;
mod sampler;
mod self_test;
