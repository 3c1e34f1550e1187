//! Two kinds of trouble that must not be mixed: what happens to one item, and what happens to the loop that carries items.

use std::borrow::Cow;

/// The outcome of one item in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Disposition {
    /// Finished: acknowledge it.
    Done,
    /// Not now: it comes back after a back-off, counted.
    Retry,
    /// Never by itself: it goes to a dead-letter queue where a person or P5 finds it.
    Park,
}

/// What a step of a background phase achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// This many items moved on; step again at once.
    Moved(usize),
    /// Nothing to do right now.
    Idle,
}

/// Trouble of the loop itself: a server is away or an invariant is broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A server did not answer; wait with growing pauses, then step again.
    #[error("{0}")]
    BackOff(Cow<'static, str>),
    /// Going on would do harm; the process ends with this message.
    #[error("{0}")]
    Stop(Cow<'static, str>),
}

impl Fault {
    /// A fault that passes by itself.
    pub fn back_off(error: impl std::fmt::Display) -> Self {
        Self::BackOff(error.to_string().into())
    }
}
