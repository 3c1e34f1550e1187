//! Runs one search with stateright, or all of them on two threads.

use stateright::{Checker, CheckerBuilder, HasDiscoveries, Model};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Searches at once.
const THREADS: usize = 2;

/// A model whose searches are reported.
pub trait Searched:
    Model<State: Clone + Debug + Hash + PartialEq + Send + Sync, Action: Clone + Debug + PartialEq + Send + Sync>
where
    Self: Copy + Send + Sync + 'static,
{
    /// Name and meaning of what must always hold.
    const LAWS: &'static [(&'static str, &'static str)];
    /// Name and meaning of what must be reached.
    const SIGHTS: &'static [(&'static str, &'static str)];

    /// A step of a counterexample; faults in bold.
    fn name(action: &Self::Action) -> String;
}

/// A search that visits everything.
pub struct Complete<M> {
    pub name: &'static str,
    pub setup: M,
    /// A search that visits fewer states has not searched.
    pub states_min: usize,
    /// Laws that break here, as the guarantees say.
    pub breaks: &'static [&'static str],
}

/// A search with one mechanism left out.
pub struct Lacking<M> {
    pub name: &'static str,
    pub setup: M,
    /// The laws that break, the most significant one last.
    pub breaks: &'static [&'static str],
}

/// What a search found.
#[derive(Debug)]
pub struct Found {
    pub states: usize,
    /// Laws that were broken, with the steps of a shortest way there.
    pub broken: BTreeMap<&'static str, Vec<String>>,
    /// Situations that were reached.
    pub seen: Vec<&'static str>,
    pub took: Duration,
}

/// Visits every state that can be reached.
pub fn search<M: Searched>(setup: M) -> Found {
    found(setup.checker(), Instant::now())
}

/// Searches for laws being broken, for each of them by the shortest way. Visits everything if they hold.
pub fn find_breaks<M: Searched>(setup: M, laws: &[&'static str]) -> Found {
    let begun = Instant::now();
    let mut all = Found { states: 0, broken: BTreeMap::new(), seen: Vec::new(), took: Duration::ZERO };
    for law in laws {
        let until = || setup.checker().finish_when(HasDiscoveries::AnyOf([*law].into()));
        let mut shortest = found(until(), begun).broken.remove(law);
        // What is reported is the last one of a block of states, so a depth limit has to find the first one.
        while let Some(steps) = shortest.take() {
            shortest = found(until().target_max_depth(steps.len() + 1), begun).broken.remove(law);
            all.broken.insert(law, steps);
        }
    }
    all
}

/// One thread, breadth first: the same numbers and the same steps in every run.
fn found<M: Searched>(builder: CheckerBuilder<M>, begun: Instant) -> Found {
    let checker = builder.threads(1).spawn_bfs().join();
    let step = |action: M::Action| M::name(&action);
    let steps = |law| checker.discovery(law).map(|path| path.into_actions().into_iter().map(step).collect());
    Found {
        states: checker.unique_state_count(),
        broken: M::LAWS.iter().filter_map(|(law, _)| Some((*law, steps(law)?))).collect(),
        seen: M::SIGHTS.iter().map(|(name, _)| *name).filter(|name| checker.discovery(name).is_some()).collect(),
        took: begun.elapsed(),
    }
}

/// Runs `work` for every index below `count`; results in order.
pub fn side_by_side<T: Send>(count: usize, work: impl Fn(usize) -> T + Send + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(count)));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= count {
                        return;
                    }
                    let result = work(at);
                    done.lock().unwrap().push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
