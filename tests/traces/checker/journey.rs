//! The lines of one request, of all processes, as one path: is there an order of them that the table allows?
//!
//! A line says when it was written, and after which other line its step happened; between the two a step may lie anywhere. So the
//! order is partial, and the search takes any order that it leaves, until one explains every line.

use super::line::Line;
use super::request::{Cell, Request, Said};
use std::collections::HashSet;

/// A line of a request.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    pub line: &'a Line,
    pub process: &'a str,
    /// The step happened after this and before `line.at`.
    pub from: u64,
    pub said: Said,
}

/// Which lines are explained: all before `base`, and those of `ahead`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Explained {
    pub base: usize,
    ahead: Vec<usize>,
}

impl Explained {
    pub fn has(&self, at: usize) -> bool {
        at < self.base || self.ahead.contains(&at)
    }

    pub fn with(&self, at: usize) -> Self {
        let mut next = self.clone();
        next.ahead.push(at);
        next.ahead.sort_unstable();
        while next.ahead.first() == Some(&next.base) {
            next.ahead.remove(0);
            next.base += 1;
        }
        next
    }

    pub fn count(&self) -> usize {
        self.base + self.ahead.len()
    }
}

/// Orders that are tried for one request. A request with more is reported, not passed.
const TRIED_MAX: usize = 200_000;

/// Why the lines are no path.
#[derive(Debug)]
pub struct NoPath {
    /// Lines that the best order explains.
    pub explained: usize,
    /// Where it ends, and why.
    pub at: usize,
    pub why: String,
}

/// Explains the lines of a request, which are sorted by `at`. Returns the cells of the table that they used.
pub fn explain(steps: &[Step<'_>]) -> Result<Vec<Cell>, NoPath> {
    let mut best = NoPath { explained: 0, at: 0, why: "no order of the lines is possible".to_owned() };
    let mut seen = HashSet::new();
    // The order as written comes first, and is nearly always right.
    let mut open = vec![(Explained::default(), Request::default(), Vec::<Cell>::new())];
    while let Some((explained, request, cells)) = open.pop() {
        if explained.base == steps.len() {
            return Ok(cells);
        }
        if seen.len() > TRIED_MAX {
            return Err(NoPath { why: "too many orders of its lines are possible".to_owned(), ..best });
        }
        if !seen.insert((explained.clone(), request)) {
            continue;
        }
        for at in next(steps, &explained).into_iter().rev() {
            match request.after(steps[at].line, steps[at].said) {
                Ok(requests) => {
                    open.extend(requests.into_iter().map(|(request, cell)| {
                        (explained.with(at), request, cells.iter().copied().chain(cell).collect())
                    }));
                }
                Err(why) if explained.count() >= best.explained => {
                    best = NoPath { explained: explained.count(), at, why };
                }
                Err(_) => {}
            }
        }
    }
    Err(best)
}

/// The lines whose step may come next: those before whose beginning no other one is left.
pub fn next(steps: &[Step<'_>], explained: &Explained) -> Vec<usize> {
    let left = (explained.base..steps.len()).filter(|at| !explained.has(*at));
    // The first that is left has the lowest `at`.
    let Some(first) = steps.get(explained.base) else { return Vec::new() };
    left.filter(|at| *at == explained.base || steps[*at].from < first.line.at).collect()
}
