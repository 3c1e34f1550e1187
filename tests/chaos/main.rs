//! Chaos: the real binary as many processes, faults on every process, server and link between them, and a checker that knows
//! only what buyers were told and what lies in the servers at the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]
#![allow(dead_code, reason = "the runs on this ground use the rest")]

#[path = "../common/files.rs"]
mod files;
mod ground;
mod process;
mod proxy;
mod proxy_facts;
#[path = "../common/raw.rs"]
mod raw;
#[path = "../common/time.rs"]
mod time;
mod weather;
