//! Runs: paths of a configuration on some sets of servers at once, and a report of what they covered.

use crate::configurations::Configuration;
use crate::play::{Difference, Played, play};
use crate::walks::{Coverage, Explored, StepKind, choose, explore};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Tries to shorten a path that differs.
const SHRINKS_MAX: usize = 200;

/// What the paths of one configuration came to.
pub struct Results {
    pub paths: usize,
    pub steps: usize,
    /// Worlds that were searched; `None` of a sample.
    pub worlds: Option<usize>,
    /// Kinds of steps that the paths have.
    pub kinds: usize,
    /// Kinds that no path has.
    pub missing: Vec<StepKind>,
    pub took: Duration,
    /// Reports of differences.
    pub differences: Vec<String>,
}

/// Plays some paths of a configuration, chosen by a seed.
pub async fn run<M: Played>(
    stages: &mut [M::Stage],
    row: &Configuration<M>,
    (seed, count, is_whole): (u64, usize, bool),
) -> Results {
    // A sample needs no search: it is random paths only.
    let explored = is_whole.then(|| explore(row.model));
    let (paths, coverage) = choose(&row.model, explored.as_ref(), (seed, count));
    played(stages, row, (&paths, seed), (explored.as_ref(), &coverage)).await
}

async fn played<M: Played>(
    stages: &mut [M::Stage],
    row: &Configuration<M>,
    (paths, seed): (&[Vec<M::Step>], u64),
    (explored, coverage): (Option<&Explored<M>>, &Coverage),
) -> Results {
    let begun = Instant::now();
    let waiting: Mutex<VecDeque<&Vec<M::Step>>> = Mutex::new(paths.iter().collect());
    let differences = Mutex::new(Vec::new());
    let work = stages.iter_mut().map(async |stage| {
        loop {
            let Some(path) = waiting.lock().unwrap().pop_front() else { return };
            if let Err(found) = play(stage, &row.model, path).await {
                let report = report(stage, row, (path, seed), found).await;
                eprintln!("{report}");
                differences.lock().unwrap().push(report);
                if differences.lock().unwrap().len() >= differences_max() {
                    return;
                }
            }
        }
    });
    futures::future::join_all(work).await;
    Results {
        paths: paths.len() - waiting.into_inner().unwrap().len(),
        steps: paths.iter().map(Vec::len).sum(),
        worlds: explored.map(Explored::worlds_count),
        kinds: coverage.count(),
        missing: explored.map(|explored| coverage.missing(explored)).unwrap_or_default(),
        took: begun.elapsed(),
        differences: differences.into_inner().unwrap(),
    }
}

/// Differences after which a run ends: they may have one cause.
fn differences_max() -> usize {
    std::env::var("GENERATED_DIFFERENCES").ok().and_then(|max| max.parse().ok()).unwrap_or(1)
}

/// Says what differs, on the shortest path that still differs.
async fn report<M: Played>(
    stage: &mut M::Stage,
    row: &Configuration<M>,
    (path, seed): (&[M::Step], u64),
    found: Difference,
) -> String {
    let (path, found) = shrink(stage, &row.model, path, found).await;
    let steps: Vec<String> = path.iter().map(|step| format!("{step:?}")).collect();
    let model: Vec<String> = found.model.iter().map(|(name, value)| format!("    {name}: {value}")).collect();
    format!(
        "{}, seed {seed}: the model and the servers differ after step {} of\n  {}\n  {}\n  the model says:\n{}",
        row.name,
        found.steps,
        steps.join(" → "),
        found.what.join("\n  "),
        model.join("\n")
    )
}

/// Leaves out steps as long as the rest can happen in the model and still ends in a difference.
async fn shrink<M: Played>(
    stage: &mut M::Stage,
    model: &M,
    path: &[M::Step],
    found: Difference,
) -> (Vec<M::Step>, Difference) {
    let (mut shortest, mut found) = (path[..found.steps].to_vec(), found);
    let (mut at, mut tries) = (0, 0);
    while at < shortest.len() && tries < SHRINKS_MAX {
        let mut shorter = shortest.clone();
        shorter.remove(at);
        if !model.can_happen(&shorter) {
            at += 1;
            continue;
        }
        tries += 1;
        match play(stage, model, &shorter).await {
            Ok(()) => at += 1,
            Err(still) => {
                shorter.truncate(still.steps);
                (shortest, found, at) = (shorter, still, 0);
            }
        }
    }
    (shortest, found)
}
