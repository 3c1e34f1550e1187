//! A soak: the whole system for hours at a share of what it bears, one fault a minute, and everything that could grow is watched. `make soak
//! MINUTES=120`; no part of `make test`. Built from the parts of `tests/chaos`.
//!
//! | rule | red when |
//! |---|---|
//! | flat | memory or open files of a role, Redis' memory or the rows of a table grow after the first quarter (`tests/chaos/flat.rs`) |
//! | kept | an accepted request has no outcome when its sale is closed |
//! | audit | an audit, asked for every minute, reports something that is no LEAK, or half of the audits got no answer |
//! | rows | at the end there are rows that nothing explains: closed sales are archived, and only payments and archived sales stay |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

// What a deployment says to the checker of its lines; a soak has none.
include!("../model/protocol.in");

#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/clients/mod.rs"]
mod clients;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/deployment/mod.rs"]
mod deployment;
#[path = "../chaos/flat.rs"]
mod flat;
mod keeper;
mod kinds;
mod measured;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../chaos/nemesis/mod.rs"]
mod nemesis;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/probe.rs"]
mod probe;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/process.rs"]
mod process;
mod report;
mod run;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/shop.rs"]
mod shop;
/// What the harness has that needs no world.
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../support"]
mod support {
    pub mod basics {
        pub mod database_kind;
        pub mod files;
        pub mod raw_commands;
        pub mod resp;
        pub mod time;
    }
    pub mod links;
    pub mod processes {
        pub mod supervised;
    }
}

#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../traces/checker/mod.rs"]
mod traces;

use support::basics::{database_kind, files, raw_commands, time};

/// What a variable of the environment says; empty is not set.
fn asked<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} cannot be read")))
}

/// `make soak` says how long; two hours otherwise.
const MINUTES: u64 = 120;

#[test]
fn nothing_grows_for_hours() {
    time::run_waiting(async {
        let orders = run::Orders {
            seed: asked("SOAK_SEED").unwrap_or_else(rand::random),
            minutes: asked("SOAK_MINUTES").unwrap_or(MINUTES),
            rate_per_s: asked("SOAK_RATE"),
        };
        let finished = run::run(&orders).await;
        let report = report::write(&finished);
        let wrong = finished.wrong();
        eprintln!("report: {}", report.display());
        assert!(wrong.is_empty(), "{}\nagain: {}", wrong.join("\n"), finished.command());
        finished.deployment.finish().await;
    });
}
