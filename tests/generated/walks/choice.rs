//! Which paths are played: first the shortest ones that together have every kind of step, then random ones.

use super::Walked;
use super::explored::Explored;
use super::kinds::StepKind;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Longest random path. Those to a kind of step are as long as they have to be.
const STEPS_MAX: usize = 30;

/// How often each kind of step is on the chosen paths.
#[derive(Default)]
pub struct Coverage {
    walked: BTreeMap<StepKind, usize>,
}

impl Coverage {
    /// Counts the steps of a path.
    fn add<M: Walked>(&mut self, model: &M, path: &[M::Step]) {
        let mut world = model.start();
        for step in path {
            let next = model.step(&world, *step);
            for kind in M::kinds(&world, *step, &next) {
                *self.walked.entry(kind).or_default() += 1;
            }
            world = next;
        }
    }

    /// How many kinds are walked.
    pub fn count(&self) -> usize {
        self.walked.len()
    }

    /// Kinds that no path has.
    pub fn missing<M: Walked>(&self, explored: &Explored<M>) -> Vec<StepKind> {
        explored.kinds().filter(|kind| !self.walked.contains_key(kind)).cloned().collect()
    }
}

/// Shortest ways that together have every kind of step, the shortest first.
pub fn every_kind<M: Walked>(model: &M, explored: &Explored<M>) -> (Vec<Vec<M::Step>>, Coverage) {
    let (mut coverage, mut paths) = (Coverage::default(), Vec::new());
    let mut ways: Vec<_> = explored.kinds().map(|kind| (kind, explored.way_to(kind))).collect();
    // The longest first: on their way they have most of the others.
    ways.sort_by_key(|(kind, way)| (std::cmp::Reverse(way.len()), *kind));
    for (kind, way) in ways {
        if !coverage.walked.contains_key(kind) {
            coverage.add(model, &way);
            paths.push(way);
        }
    }
    paths.sort_by_key(Vec::len);
    (paths, coverage)
}

/// Chooses paths of a configuration, the same ones for the same seed: after a search those with every kind of step, then random ones.
pub fn choose<M: Walked>(
    model: &M,
    explored: Option<&Explored<M>>,
    (seed, count): (u64, usize),
) -> (Vec<Vec<M::Step>>, Coverage) {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut paths, mut coverage) = explored.map(|explored| every_kind(model, explored)).unwrap_or_default();
    while paths.len() < count {
        let path = walk(model, &coverage, &mut random);
        coverage.add(model, &path);
        paths.push(path);
    }
    (paths, coverage)
}

/// A random path until nothing can happen any more.
fn walk<M: Walked>(model: &M, coverage: &Coverage, random: &mut StdRng) -> Vec<M::Step> {
    let (mut world, mut path) = (model.start(), Vec::new());
    let length = random.random_range(STEPS_MAX / 3..=STEPS_MAX);
    while path.len() < length {
        let steps = model.possible(&world);
        let weight = |step| {
            let kinds = M::kinds(&world, step, &model.step(&world, step));
            let least = kinds.iter().map(|kind| coverage.walked.get(kind).copied().unwrap_or(0)).min();
            1.0 / (1.0 + least.unwrap_or(0) as f64)
        };
        let weights: Vec<f64> = steps.iter().map(|step| weight(*step)).collect();
        let mut at = random.random_range(0.0..=weights.iter().sum::<f64>().max(f64::MIN_POSITIVE));
        let chosen = steps.iter().zip(&weights).find(|(_, weight)| {
            at -= **weight;
            at <= 0.0
        });
        let Some(step) = chosen.map(|(step, _)| *step).or(steps.last().copied()) else { break };
        world = model.step(&world, step);
        path.push(step);
    }
    path
}
