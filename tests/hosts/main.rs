//! Any one of three hosts may vanish: `make hosts`. Three hosts as network namespaces, each with a Redis primary and replicas of
//! the others', a RabbitMQ node, a Galera node, a balancer and all roles; the clients and the checker of `tests/chaos` judge.
//! Needs root, and `scripts/hosts.sh`, which gives the run a network of its own; so it is no part of `make test`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests fail by panicking"
)]

mod cells;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/checker/mod.rs"]
mod checker;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/clients/mod.rs"]
mod clients;
#[path = "../chaos/loss/damage.rs"]
mod damage;
mod damaged;
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../chaos/dump/mod.rs"]
mod dump;
mod front;
mod host;
mod measure;
mod network;
mod play;
mod probes;
mod promised;
mod random;
mod sales;
#[path = "../chaos/sampler.rs"]
mod sampler;
mod scenes;
mod servers;
mod site;
/// What the harness has that needs no world.
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../support"]
mod support {
    pub mod basics {
        pub mod files;
        pub mod raw_commands;
        pub mod resp;
        pub mod time;
    }
    pub mod processes {
        pub mod supervised;
    }
}
#[allow(dead_code, reason = "each binary uses a part of it")]
#[path = "../traces/checker/mod.rs"]
mod traces;
mod two_writers;
mod written;

// The model that lines are held against where no server may forget.
include!("../model/protocol.in");

use play::Stage;
use scenes::Scene;
use servers::Kind;
use std::path::PathBuf;
use support::basics::{files, raw_commands, time};

/// Where the processes write their lines, where a run has them: `TRACED=1`, with the test build.
fn traces_folder() -> Option<PathBuf> {
    asked::<u8>("HOSTS_TRACED").filter(|traced| *traced == 1).map(|_| folder().join("traces"))
}

/// What `scripts/hosts.sh` sets: a folder that every user may pass, which goes away with the run.
const FOLDER: &str = "HOSTS_FOLDER";

/// What a variable of the environment says; empty is not set.
fn asked<T: std::str::FromStr>(variable: &str) -> Option<T> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
    Some(value.parse().unwrap_or_else(|_| panic!("{variable}={value} cannot be read")))
}

/// Status and body of an answer; 0 when there was none.
async fn status_and_body(request: reqwest::RequestBuilder) -> (u16, serde_json::Value) {
    let Ok(answer) = request.send().await else { return (0, serde_json::Value::Null) };
    let status = answer.status().as_u16();
    let Ok(body) = answer.text().await else { return (0, serde_json::Value::Null) };
    (status, serde_json::from_str(&body).unwrap_or_default())
}

fn folder() -> PathBuf {
    let folder: String = asked(FOLDER).unwrap_or_else(|| panic!("start it by `make hosts`: {FOLDER} is not set"));
    PathBuf::from(folder)
}

/// Where the hosts' files are.
fn site_folder() -> PathBuf {
    folder().join("site")
}

/// Those of the scenes that `SCENES` names (parts of names, separated by commas); all by default.
fn wanted(all: Vec<Scene>) -> Vec<Scene> {
    let parts: String = asked("SCENES").unwrap_or_default();
    let parts: Vec<&str> = parts.split(',').filter(|part| !part.is_empty()).collect();
    let named = |scene: &Scene| parts.is_empty() || parts.iter().any(|part| scene.name.contains(part));
    all.into_iter().filter(named).collect()
}

async fn play(kind: Kind, scenes: Vec<Scene>, name: &str) {
    let mut stage = Stage::set(&folder(), kind).await;
    let mut results = written::Results::begin(&asked("HOSTS_NAME").unwrap_or_else(|| name.to_owned()));
    for scene in scenes {
        let played = stage.play(scene, 1).await;
        results.add(&played);
        if played.unrest.is_some() {
            // What is not whole would make the next scene red, too.
            break;
        }
    }
    results.assert_green();
}

#[test]
fn each_scene_loses_doubles_and_oversells_nothing() {
    time::run(play(Kind::Clusters, wanted(scenes::all()), "scenes"));
}

#[test]
fn on_sentinel_and_a_replica_of_the_database_too() {
    time::run(play(Kind::Replicas, wanted(scenes::on_replicas()), "replicas-scenes"));
}

#[test]
fn faults_by_a_seed_lose_double_and_oversell_nothing() {
    time::run(random::run());
}

#[test]
fn a_damaged_file_on_one_of_three_loses_nothing() {
    time::run(damaged::run());
}

#[test]
fn the_loss_of_a_cell_leaves_the_others_alone() {
    time::run(cells::one_is_lost());
}

#[test]
fn two_nodes_that_are_written_to_at_once_keep_the_books() {
    time::run(two_writers::keep_the_books());
}
