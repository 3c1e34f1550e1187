//! The image, the compose file and the units of systemd as people run them: `make image-test`, `make compose`, `make units-test`.
//! `make test` builds nothing of it: it needs containers, or root's rights.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod commands;
mod compose;
mod engine;
mod image;
mod services;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of the harness")]
#[path = "../support/mod.rs"]
mod support;
mod systemd;
mod units;
