//! A run by a seed: faults drawn from those of one host, each until all is whole again.
//!
//! Input: `HOSTS_SEED`, `HOSTS_MINUTES`. Output: how many faults in how many minutes, and what the judges found after each.

use crate::play::Stage;
use crate::scenes::{Act, HostFault, Scene, random_acts};
use crate::servers::Kind;
use crate::{asked, folder, written};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::json;
use std::time::{Duration, Instant};

const MINUTES: u64 = 10;
/// How long a fault lasts, milliseconds; a host is also frozen for a minute.
const LASTS_MS: std::ops::RangeInclusive<u64> = 3_000..=25_000;
const FROZEN_MS: u64 = 60_000;

/// Plays faults until the time is over.
pub async fn run() {
    let seed: u64 = asked("HOSTS_SEED").unwrap_or_else(rand::random);
    let minutes = asked("HOSTS_MINUTES").unwrap_or(MINUTES);
    eprintln!("hosts: seed {seed}, {minutes} minutes");
    let mut stage = Stage::set(&folder(), Kind::Clusters).await;
    let mut results = written::Results::begin(&format!("random-{seed}"));
    let (mut random, acts, begun) = (StdRng::seed_from_u64(seed), random_acts(), Instant::now());
    let mut faults = 0;
    while begun.elapsed() < Duration::from_secs(60 * minutes) {
        let act = acts[random.random_range(0..acts.len())];
        let mut lasts_ms = random.random_range(LASTS_MS);
        if matches!(act, Act::One(HostFault::Frozen, _)) && random.random_bool(0.3) {
            lasts_ms = FROZEN_MS;
        }
        let name = format!("{act:?}").leak();
        let played = stage.play(Scene { name, act, lasts_ms }, random.random()).await;
        faults += 1;
        results.add(&played);
        let restarts = stage.site.restarts().await;
        let run_s = begun.elapsed().as_secs();
        results.write(&json!({ "seed": seed, "faults": faults, "run_s": run_s, "restarts": restarts }));
        eprintln!("hosts: {faults} faults in {run_s} s, seed {seed}");
        if results.is_red() {
            break;
        }
    }
    results.assert_green();
}
