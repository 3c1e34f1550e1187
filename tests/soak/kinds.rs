//! Which fault comes in which minute, by a seed.

use crate::nemesis::Kind;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

/// Plain faults and faults at a step, by turns; each kind comes before any comes again.
pub struct Kinds {
    random: StdRng,
    pack: Vec<Kind>,
}

impl Kinds {
    /// From this seed.
    pub fn new(seed: u64) -> Self {
        Self { random: StdRng::seed_from_u64(seed), pack: Vec::new() }
    }

    /// When the minute's fault begins, milliseconds into it.
    pub fn at_ms(&mut self, within: std::ops::RangeInclusive<u64>) -> u64 {
        self.random.random_range(within)
    }

    /// The kind of this minute.
    pub fn next(&mut self, minute: u64) -> Kind {
        if minute % 2 == 1 {
            return Kind::FailAtStep;
        }
        if self.pack.is_empty() {
            self.pack.extend(Kind::ALL);
        }
        self.pack.swap_remove(self.random.random_range(0..self.pack.len()))
    }
}
