//! Trouble of a background phase as a whole, and what one step of it achieved. What happens to a single item is a state
//! ([`super::states`]).

use std::borrow::Cow;

/// What a step of a background phase achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// This many items moved on; step again at once.
    Moved(usize),
    /// Nothing to do right now.
    Idle,
}

/// Trouble of the loop itself: a server is unavailable or an invariant is broken.
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
    pub(crate) fn back_off(error: impl std::fmt::Display) -> Self {
        Self::BackOff(error.to_string().into())
    }
}
