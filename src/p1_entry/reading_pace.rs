//! When a process reads again what it remembers of the database: what was changed each second or so, everything now and then.
//!
//! Input: the readings that were done. Output: whether one is due, and whether the changes of the last [`CHANGED_S`] seconds are enough.
//! Rows are found by the time of their change, by the clock that wrote it: so a reading costs one short range of an index, whatever
//! number of rows there is. A crash leaves nothing.

use std::time::{Duration, Instant};

/// What was changed in this time is read, seconds: far longer than a change takes to commit.
pub(super) const CHANGED_S: u32 = 60;
/// After this time without a reading everything is read: half of [`CHANGED_S`], the other half is for a change that was committing.
const MISSED_AFTER: Duration = Duration::from_secs(CHANGED_S as u64 / 2);
/// Everything is read this often, whatever happens: so that a clock of the database that jumped hides no change for longer.
const REFILL_EVERY: Duration = Duration::from_secs(600);

/// The readings of one memory.
pub(super) struct ReadingPace {
    every: Duration,
    /// When everything was read last; `None`: never.
    filled_at: Option<Instant>,
    /// When changes were read last.
    read_at: Instant,
}

impl ReadingPace {
    /// Changes are read this often.
    pub(super) fn new(every: Duration) -> Self {
        Self { every, filled_at: None, read_at: Instant::now() }
    }

    /// Whether to read now.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.filled_at.is_none() || now >= self.read_at + self.every
    }

    /// Whether no change can have been missed, so that the newest ones are enough.
    pub(super) fn changes_are_enough(&self) -> bool {
        self.filled_at.is_some_and(|at| at.elapsed() < REFILL_EVERY) && self.read_at.elapsed() < MISSED_AFTER
    }

    /// Everything was read.
    pub(super) fn filled(&mut self) {
        self.filled_at = Some(Instant::now());
    }

    /// A reading that began at this time is done.
    pub(super) fn read(&mut self, began: Instant) {
        self.read_at = began;
    }
}
