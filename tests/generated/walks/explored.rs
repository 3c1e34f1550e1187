//! Everything that a configuration can reach, by a search in breadth that takes worlds for the same as the model's own search does:
//! which kinds of steps there are, and a shortest way to each.

use super::Walked;
use super::kinds::StepKind;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// What a configuration can reach.
pub struct Explored<M: Walked> {
    /// From which world each one was reached first, and by which step; the start by none.
    from: Vec<Option<(usize, M::Step)>>,
    /// The first world of each kind of step, and the step that is of this kind there.
    kinds: BTreeMap<StepKind, (usize, M::Step)>,
}

/// Visits every world. Of those that are the same but for the places of relays and requests it keeps the first one, as it is: the
/// way to it can be walked.
pub fn explore<M: Walked>(model: M) -> Explored<M> {
    let start = model.start();
    let mut found = Explored { from: vec![None], kinds: BTreeMap::new() };
    let mut known = HashSet::from([M::in_order(&start)]);
    let mut waiting = VecDeque::from([(0, start)]);
    while let Some((at, world)) = waiting.pop_front() {
        for step in model.possible(&world) {
            let next = model.step(&world, step);
            for kind in M::kinds(&world, step, &next) {
                found.kinds.entry(kind).or_insert((at, step));
            }
            if known.insert(M::in_order(&next)) {
                waiting.push_back((found.from.len(), next));
                found.from.push(Some((at, step)));
            }
        }
    }
    found
}

impl<M: Walked> Explored<M> {
    /// How many worlds it can reach.
    pub fn worlds_count(&self) -> usize {
        self.from.len()
    }

    /// Every kind of step.
    pub fn kinds(&self) -> impl Iterator<Item = &StepKind> {
        self.kinds.keys()
    }

    /// A shortest path to a step of this kind, which is its last one.
    pub fn way_to(&self, kind: &StepKind) -> Vec<M::Step> {
        let (mut at, last) = self.kinds[kind];
        let mut path = vec![last];
        while let Some((from, step)) = self.from[at] {
            path.push(step);
            at = from;
        }
        path.reverse();
        path
    }
}
