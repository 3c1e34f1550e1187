//! Mutations of the models in the product: each scene is the way to the harm that the model names, played with the mechanism and
//! without it. What finds the harm knows nothing of the switch: the audit, or what buyers got and what is in the servers.
//!
//! A switch and a hold are of the whole process, so the scenes of a process are played one after another (`parts.rs`).
//! `tests/model/product.rs` says which test is whose.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod audits;
mod drops;
mod events;
mod grants;
mod lines;
mod messages;
mod money;
mod neighbours;
mod parts;
mod persons;
mod rebuilds;
mod replicas;
mod scene;
#[allow(dead_code, unused_imports, reason = "each binary uses a part of it")]
#[path = "../support/mod.rs"]
mod support;
mod transfers;
mod two_leaders;
mod webhooks;

use seckill::faults::Mechanism;
use std::sync::{Mutex, PoisonError};

/// One scene of this process at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Whether the mechanism of a scene is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plays {
    /// As it is shipped.
    With,
    /// It is left out.
    Without,
}

/// Plays a scene with and without the mechanism: harm is found exactly without it. The scene says what was found.
pub fn harms_without(mechanism: Mechanism, scene: impl AsyncFn(Plays) -> Vec<String>) {
    parts::play(|| {
        let [with, without] = played(mechanism, scene);
        assert!(with.is_empty(), "with {}: {with:#?}", mechanism.code());
        assert!(!without.is_empty(), "{} is left out and nothing was found", mechanism.code());
    });
}

/// The same for a mechanism that finds harm: a harm that is there is found exactly with it.
pub fn blind_without(mechanism: Mechanism, scene: impl AsyncFn(Plays) -> Vec<String>) {
    parts::play(|| {
        let [with, without] = played(mechanism, scene);
        assert!(!with.is_empty(), "nothing was found with {}", mechanism.code());
        assert!(without.is_empty(), "{} is left out: {without:#?}", mechanism.code());
    });
}

/// Plays a scene while no other one of its process is played.
pub fn alone(scene: impl Future<Output = ()>) {
    parts::play(|| alone_here(scene));
}

fn alone_here(scene: impl Future<Output = ()>) {
    // A test that failed leaves nothing armed.
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    support::world::run(scene);
}

fn played(mechanism: Mechanism, scene: impl AsyncFn(Plays) -> Vec<String>) -> [Vec<String>; 2] {
    let mut found = [Vec::new(), Vec::new()];
    alone_here(async {
        found[0] = scene(Plays::With).await;
        let armed = mechanism.leave_out();
        found[1] = scene(Plays::Without).await;
        drop(armed);
    });
    eprintln!("{}: {:?} with it, {:?} without", mechanism.code(), found[0], found[1]);
    found
}
