//! Chaos: the real binary as many processes, faults on every process, server and link between them, clients that behave as
//! real ones do, and a checker that trusts no part of it: it knows only the answers that clients got and what is in the servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

// The model that the lines of a run are held against.
include!("../model/protocol.in");

mod checker;
mod clients;
mod clocks;
mod controls;
mod deployment;
mod dump;
#[allow(dead_code, reason = "the soak judges by it (tests/soak), its tests are here")]
mod flat;
mod floors;
mod link_tests;
mod loss;
mod many_lines;
mod meter;
mod nemesis;
mod operators;
mod probe;
mod process;
mod report;
mod run;
mod sampler;
mod self_test;
mod shop;
mod stage;
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
        pub mod wrong_clock;
    }
}

#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../traces/checker/mod.rs"]
mod traces;

use seckill::faults::Mechanism;
use support::basics::{database_kind, files, raw_commands, time};
use support::processes::wrong_clock;

/// How long the faults last when nothing else is asked for; `make test-long` asks for ten minutes.
const SHORT_MS: u64 = 30_000;

/// What a variable of the environment says; empty is not set.
fn asked<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} cannot be read")))
}

/// Seeds of the runs of every change, one for each kind of outbox: what is red then is red by the change.
const FIXED_SEEDS: [u64; 2] = [1, 2];

/// `CHAOS_SEED`: a number repeats a schedule, `random` draws one; the fixed seeds when nothing is said.
fn seeds(fixed: &[u64]) -> Vec<u64> {
    match asked::<String>("CHAOS_SEED").as_deref() {
        None => fixed.to_vec(),
        Some("random") => vec![rand::random()],
        Some(seed) => vec![seed.parse().unwrap_or_else(|_| panic!("CHAOS_SEED={seed}: a number, or random"))],
    }
}

/// What the environment asks for: `CHAOS_MINUTES` or `CHAOS_SECONDS` says how long,
/// `CHAOS_REPAIRS=0` leaves P5's repairs out (and what only they can heal), `CHAOS_SET=section.key=value,…` changes settings,
/// `CHAOS_OFF=mechanism` leaves one out.
fn orders(seed: u64) -> run::Orders {
    let length_ms = match (asked::<u64>("CHAOS_MINUTES"), asked::<u64>("CHAOS_SECONDS")) {
        (Some(minutes), _) => minutes * 60_000,
        (None, Some(seconds)) => seconds * 1_000,
        (None, None) => SHORT_MS,
    };
    run::Orders {
        seed,
        length_ms,
        repairs: asked::<u8>("CHAOS_REPAIRS") != Some(0),
        off: asked("CHAOS_OFF")
            .map(|code: String| *Mechanism::ALL.iter().find(|known| known.code() == code).expect("a mechanism's code")),
        set: settings(seed),
    }
}

/// What `CHAOS_SET` says, on top of what the seed decides: the kind of outbox.
fn settings(seed: u64) -> Vec<String> {
    let outbox = format!("redis.outbox={}", if seed.is_multiple_of(2) { "list" } else { "stream" });
    std::iter::once(outbox).chain(given_settings()).collect()
}

fn given_settings() -> Vec<String> {
    let set: String = asked("CHAOS_SET").unwrap_or_default();
    set.split(',').filter(|set| !set.is_empty()).map(str::to_owned).collect()
}

#[test]
fn a_short_chaos_run_loses_nothing() {
    time::run_waiting(async {
        for seed in seeds(&FIXED_SEEDS) {
            let finished = run::run(orders(seed)).await;
            let report = report::write(&finished);
            eprintln!("{}", finished.summary());
            eprintln!("report: {}", report.display());
            assert!(finished.is_green(), "{}", finished.complaints());
            let short = finished.shortfalls();
            assert!(short.is_empty(), "the run proves too little: {}", short.join("; "));
            finished.deployment.finish().await;
        }
    });
}
